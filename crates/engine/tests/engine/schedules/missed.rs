//! What becomes of slots that a stop has missed.

use super::*;

/// What becomes of the slots of a stop of ten minutes.
async fn after_a_stop(misfire: &str, overlap: &str) -> (Vec<SlotRecord>, Vec<Task>) {
    let mut world = World::new().await;
    let draft = ScheduleDraft { misfire: Some(misfire.to_owned()), ..every("1m") };
    world.put(overlapping(overlap, draft)).await;
    settle().await;
    world.engine.close().await;
    pass(10 * MINUTE).await;
    world.start_again().await;
    settle().await;
    (world.records().await, world.tasks_of("s").await)
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_the_misfire_rule_decides() {
    // Ten slots were missed, the last of them less than a minute ago: that one is on time.
    for (misfire, missed) in [("skip", 9), ("latest", 9)] {
        let (records, tasks) = after_a_stop(misfire, "cancelOther").await;
        assert_eq!(tally(&records), BTreeMap::from([(None, 1), (Some("MISSED"), missed)]));
        assert_eq!(slots(&tasks), [records[9].slot], "{misfire}");
    }
    let (records, tasks) = after_a_stop("all", "allow").await;
    // With the one that is ahead.
    assert_eq!(tally(&records), BTreeMap::from([(None, 11)]));
    assert_eq!(tasks.len(), 11);
    let (records, tasks) = after_a_stop("all", "skip").await;
    assert_eq!(tally(&records), BTreeMap::from([(None, 1), (Some("OVERLAP"), 9)]));
    assert_eq!(slots(&tasks), [records[0].slot]);
    let (records, _) = after_a_stop("all", "bufferOne").await;
    assert_eq!(tally(&records), BTreeMap::from([(None, 2), (Some("BUFFERED"), 8)]));
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_slot_runs_and_those_too_old_do_not() {
    for (misfire, outcome) in [("latest", None), ("skip", Some("MISSED"))] {
        let mut world = World::new().await;
        let draft = ScheduleDraft {
            misfire: Some(misfire.to_owned()),
            catch_up_seconds: Some(1800.0),
            ..every("10m")
        };
        world.put(draft).await;
        settle().await;
        world.engine.close().await;
        pass(65 * MINUTE).await;
        world.start_again().await;
        settle().await;
        let records = world.records().await;
        let outcomes: Vec<_> =
            records.iter().map(|record| skipped(record).map(SkipReason::as_str)).collect();
        let old = Some("TOO_OLD");
        let missed = Some("MISSED");
        assert_eq!(outcomes, [old, old, old, old, missed, missed, outcome], "{misfire}");
    }
}

crate::stores::with_lost_hints!(
    all: after_a_stop_the_misfire_rule_decides,
    the_latest_missed_slot_runs_and_those_too_old_do_not
);
