//! Schedules of every policy on a server that is killed, and started again when their slots are minutes late.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use duly_client::Precondition;
use duly_client::wire::{ScheduleView, SlotView};
use duly_core::schedule::{Misfire, Overlap, SkipReason};
use duly_core::time::Timestamp;
use duly_testkit::Server;
use duly_testkit::wait::{PATIENCE, eventually};
use serde_json::json;

use super::DULY;

/// Seconds from one slot to the next, and for how many a missed one may still start.
const RHYTHMS: [(i64, i64); 2] = [(10, 200), (120, 500)];
/// How long a restarted server may take to decide slots, in seconds.
const SLACK: i64 = 20;
/// A slot decided later than this, in seconds, is missed.
const ON_TIME: i64 = 60;

/// A schedule and what is expected of it.
struct Case {
    schedule: ScheduleView,
    overlap: Overlap,
    misfire: Misfire,
    every: i64,
    catch_up: i64,
}

impl Case {
    async fn create(
        server: &Server,
        (every, catch_up): (i64, i64),
        overlap: Overlap,
        misfire: Misfire,
    ) -> anyhow::Result<Self> {
        let name = format!("{overlap}-{misfire}-{every}");
        let body = json!({"every": format!("{every}s"), "overlap": overlap, "misfire": misfire,
            "catchUpSeconds": catch_up, "task": {"type": "echo"}});
        let put = server.client().put_schedule(&name, body.to_string(), Precondition::Absent);
        Ok(Self { schedule: put.await?, overlap, misfire, every, catch_up })
    }

    async fn slots(&self, server: &Server) -> anyhow::Result<BTreeMap<i64, SlotView>> {
        let runs = server.client().slot_runs(&self.schedule.name).await?;
        Ok(runs.items.into_iter().map(|slot| (seconds(slot.slot), slot)).collect())
    }

    /// Its slots from its creation until then, by arithmetic alone.
    fn expected(&self, until: i64) -> impl Iterator<Item = i64> {
        let first = seconds(self.schedule.created_at) / self.every + 1;
        (first..=until / self.every).map(|number| number * self.every)
    }

    /// What may become of a slot that is so many seconds late.
    fn outcomes(&self, late: i64) -> &'static [Option<SkipReason>] {
        const RUNS: Option<SkipReason> = None;
        const MISSED: &[Option<SkipReason>] = &[Some(SkipReason::Missed)];
        match (late, self.misfire) {
            (late, _) if late > self.catch_up => &[Some(SkipReason::TooOld)],
            (late, Misfire::Skip) if late > ON_TIME => MISSED,
            // An earlier slot is never the newest that was missed.
            (late, Misfire::Latest) if late > ON_TIME + self.every => MISSED,
            // With slots every 10 s, newer ones are on time.
            (late, Misfire::Latest) if late > ON_TIME && self.every < ON_TIME => MISSED,
            _ => match self.overlap {
                Overlap::Allow | Overlap::CancelOther => &[RUNS],
                Overlap::Skip => &[RUNS, Some(SkipReason::Overlap)],
                Overlap::BufferOne => &[RUNS, Some(SkipReason::Buffered)],
            },
        }
    }

    /// Compares the records with the rules. Before it died, the server was on time, and it had stored
    /// slots of this span ahead.
    fn judge(&self, slots: &BTreeMap<i64, SlotView>, died: i64, restarted: i64) {
        let name = &self.schedule.name;
        // It may have died a little after that.
        let ahead = died..=died + ON_TIME + SLACK;
        for slot in self.expected(restarted) {
            let view = slots.get(&slot);
            let view = view.unwrap_or_else(|| panic!("{name}: nothing is known of {slot}"));
            let late = restarted - slot;
            let mut allowed = [self.outcomes(late), self.outcomes(late + SLACK)].concat();
            if slot < died {
                allowed = self.outcomes(0).to_vec();
            } else if slot == died {
                allowed.extend(self.outcomes(0));
            } else if self.overlap == Overlap::Allow && ahead.contains(&slot) {
                allowed.push(None);
            }
            assert!(
                allowed.contains(&view.skipped),
                "{name}: {:?} of a slot that was {late} s late; allowed: {allowed:?}",
                view.skipped
            );
            assert_eq!(view.task_id.is_some(), view.skipped.is_none(), "{name}: {view:?}");
        }
        let newest = self.expected(restarted).last();
        let late = newest.map(|slot| restarted - slot).unwrap_or_else(|| panic!("{name}: no slot"));
        let must_run = self.outcomes(late).contains(&None);
        let ran = slots.range(ahead.end() + 1..=restarted).any(|(_, slot)| slot.skipped.is_none());
        assert_eq!(ran, must_run, "{name}: whether any missed slot ran");
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.millis() / 1000
}

async fn start(data: &Path, ahead: i64) -> anyhow::Result<Server> {
    Server::start(Path::new(DULY), data, &["--clock-ahead", &format!("{ahead}s")]).await
}

async fn now(server: &Server) -> anyhow::Result<i64> {
    let task = server.client().submit(&serde_json::from_value(json!({"type": "echo"}))?).await?;
    Ok(seconds(task.created_at))
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_a_killed_server_missed_follow_their_rule() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = start(data.path(), 0).await?;
    let mut cases = Vec::new();
    for rhythm in RHYTHMS {
        for overlap in Overlap::ALL {
            for misfire in Misfire::ALL {
                cases.push(Case::create(&server, rhythm, overlap, misfire).await?);
            }
        }
    }
    let first = &cases[0];
    let ran = || async { first.slots(&server).await.ok()?.into_values().find(is_over).map(drop) };
    eventually("a slot on time", PATIENCE, ran).await?;
    let died = now(&server).await?;
    server.kill().await?;
    // The newest slot of the slow rhythm is missed, then, and one of the fast rhythm is on time.
    let ahead = 600 + (120 + 85 - died % 120) % 120;
    let server = start(data.path(), ahead).await?;
    let restarted = died + ahead;
    for case in &cases {
        let newest = case.expected(restarted).last().context("no slot")?;
        let decided =
            || async { case.slots(&server).await.ok()?.contains_key(&newest).then_some(()) };
        eventually("the newest slot is decided", PATIENCE, decided).await?;
        case.judge(&case.slots(&server).await?, died, restarted);
    }
    let tasks = server.all_tasks().await?;
    let mut slots: Vec<_> = tasks.iter().filter_map(|task| task.schedule.as_ref()).collect();
    let all = slots.len();
    slots.sort_by_key(|it| (it.name.clone(), it.slot));
    slots.dedup_by_key(|it| (it.name.clone(), it.slot));
    assert_eq!(slots.len(), all, "a slot has two tasks");
    Ok(())
}

fn is_over(slot: &SlotView) -> bool {
    slot.status.as_deref() == Some("SUCCESS")
}
