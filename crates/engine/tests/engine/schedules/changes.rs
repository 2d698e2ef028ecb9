//! Edits, pauses, triggers and deletions.

use duly_core::submit::Change;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_pause_withdraws_what_waits_and_a_resumed_schedule_goes_on_from_then() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        let before = world.work(35 * SECOND).await.len();
        let view = world.switch(ScheduleStatus::Paused).await;
        assert_eq!(view.next, None);
        assert!(world.work(MINUTE * 3 + SECOND).await.is_empty(), "{overlap}");
        assert_eq!(world.tasks_of("s").await.len(), before);
        let resumed = world.now().await;
        let view = world.switch(ScheduleStatus::Active).await;
        assert_eq!(view.next, view.rule.next(resumed));
        let after = world.work(35 * SECOND).await;
        let expected = view.rule.slots(resumed, world.now().await, 100);
        assert_eq!(after.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
        let records = world.records().await;
        assert!(records.iter().all(|record| skipped(record).is_none()), "no slot was missed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_takes_effect_at_once() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        world.work(21 * SECOND).await;
        let edited = world.now().await;
        let view = world.put(overlapping(overlap, every("7s"))).await;
        let ran = world.work(MINUTE + SECOND).await;
        let expected = view.rule.slots(edited, world.now().await, 100);
        assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected, "{overlap}");
        assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_and_notes_change_without_withdrawing_slots() {
    let world = World::new().await;
    let draft = || overlapping("allow", every("10s"));
    let before = world.put(draft()).await;
    settle().await;
    let waiting = slots(&world.tasks_of("s").await);
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let new = NewSchedule { labels, note: Some("why".to_owned()), ..new(draft(), echo()) };
    let after = world.put_named("s", new).await;
    assert_eq!(after.schedule.generation, before.schedule.generation);
    assert_eq!((after.rule.labels["a"].as_str(), after.rule.note.as_deref()), ("b", Some("why")));
    settle().await;
    assert_eq!(slots(&world.tasks_of("s").await), waiting);
}

#[tokio::test(start_paused = true)]
async fn new_labels_of_a_task_do_not_hide_where_it_comes_from() {
    let world = World::new().await;
    world.put(overlapping("allow", every("10s"))).await;
    settle().await;
    let waiting = world.tasks_of("s").await;
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let change = Change {
        payload: None,
        priority: None,
        start: None,
        retries: None,
        timeout: None,
        labels: Some(labels),
    };
    let edited = world.engine.edit(&tenant(), waiting[0].id, change).await.unwrap();
    assert_eq!(edited.labels["a"], "b");
    assert_eq!(slot_of(&edited), slot_of(&waiting[0]));
    assert_eq!(slots(&world.tasks_of("s").await), slots(&waiting));
}

#[tokio::test(start_paused = true)]
async fn a_trigger_follows_the_overlap_rule() {
    let world = World::new().await;
    world.put(every("1h")).await;
    let first = world.trigger().await;
    assert_eq!(first.status, Some(RunStatus::Task(Status::Pending)));
    assert_eq!(skipped(&world.trigger().await), Some(SkipReason::Overlap));
    world.put(overlapping("bufferOne", every("1h"))).await;
    let first = world.trigger().await;
    let SlotOutcome::Ran(SlotRun::Task(first)) = first.outcome else { panic!("nothing runs") };
    let held = world.source.claim(1).await.unwrap();
    assert_eq!(held[0].task, first);
    let second = world.trigger().await;
    assert_eq!(second.status, Some(RunStatus::Task(Status::Blocked)));
    assert_eq!(skipped(&world.trigger().await), Some(SkipReason::Buffered));
    world.end(held).await;
    let next = world.source.claim(1).await.unwrap();
    assert_eq!(second.outcome, SlotOutcome::Ran(SlotRun::Task(next[0].task)));
    world.put(overlapping("cancelOther", every("1h"))).await;
    let third = world.trigger().await;
    assert_eq!(third.status, Some(RunStatus::Task(Status::Pending)));
    assert_eq!(world.get(next[0].task).await.status, Status::Cancelled);
    let told = world.source.taken_back().await;
    assert_eq!(told[0].task, next[0].task, "its worker is told");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_runs_a_paused_schedule_and_moves_no_slot() {
    let world = World::new().await;
    world.put(every("10s")).await;
    world.switch(ScheduleStatus::Paused).await;
    let run = world.trigger().await;
    assert!(matches!(run.outcome, SlotOutcome::Ran(SlotRun::Task(_))));
    assert_ne!(run.slot.millis() % 1000, 0);
    assert_eq!(world.work(MINUTE).await.len(), 1);
    let unknown = world.engine.trigger_schedule(&tenant(), &name("other")).await;
    assert!(matches!(unknown, Err(ScheduleError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn what_another_node_changes_is_known_within_a_minute() {
    let world = World::among_others().await;
    world.put(every("5s")).await;
    world.work(10 * SECOND + SECOND / 2).await;
    // Past the use cases: nothing tells this node.
    let delete = duly_core::ports::store::DeleteSchedule {
        tenant: tenant(),
        name: name("s"),
        managed: false,
        expected: Expected::Any,
    };
    let view = world.engine.schedule(&tenant(), &name("s")).await.unwrap().unwrap();
    let put = duly_core::ports::store::PutSchedule {
        id: view.schedule.id,
        tenant: tenant(),
        name: name("s"),
        definition: duly_core::schedule::Definition::new(&rule(every("3s")), &echo()),
        labels: BTreeMap::new(),
        status: ScheduleStatus::Active,
        note: None,
        managed: false,
        expected: Expected::Any,
    };
    let edited = world.now().await;
    world.store.put_schedule(put).await.unwrap();
    let ran = world.work(22 * SECOND).await;
    let expected = rule(every("3s")).slots(edited, world.now().await, 100);
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
    world.store.delete_schedule(delete).await.unwrap();
    assert!(world.work(MINUTE * 2).await.is_empty());
    let calls = world.faults.calls("decide_slots");
    pass(MINUTE).await;
    assert_eq!(world.faults.calls("decide_slots"), calls, "it is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_schedule_fires_no_more() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        world.work(25 * SECOND).await;
        let (tenant, name) = (tenant(), name("s"));
        world.engine.delete_schedule(&tenant, &name, Expected::Any).await.unwrap();
        let again = world.engine.delete_schedule(&tenant, &name, Expected::Any).await;
        assert!(matches!(again, Err(ScheduleError::NotFound)));
        let calls = world.faults.calls("decide_slots");
        assert!(world.work(MINUTE * 3).await.is_empty());
        assert!(world.engine.slot_records(&tenant, &name).await.unwrap().is_none());
        assert_eq!(world.faults.calls("decide_slots"), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_need_the_version_that_is_there() {
    let world = World::new().await;
    let (tenant, name) = (tenant(), name("s"));
    let put = |expected| {
        let new = new(every("1h"), echo());
        world.engine.put_schedule(&tenant, &name, new, expected)
    };
    let (view, created) = put(Expected::Absent).await.unwrap();
    assert!(created);
    let version = view.schedule.version;
    let other = Expected::Version(version + 1);
    let deleted = world.engine.delete_schedule(&tenant, &name, other).await;
    assert!(matches!(deleted, Err(ScheduleError::Conflict { version: known }) if known == version));
    assert!(matches!(put(Expected::Absent).await, Err(ScheduleError::Conflict { .. })));
    let page = ListSchedules {
        tenant: tenant.clone(),
        status: None,
        labels: BTreeMap::new(),
        after: None,
        limit: 10,
    };
    let (views, next) = world.engine.schedules(page).await.unwrap();
    assert_eq!((views.len(), next), (1, None));
}

crate::stores::with_lost_hints!(
    all: a_trigger_follows_the_overlap_rule,
    a_trigger_runs_a_paused_schedule_and_moves_no_slot,
    changes_need_the_version_that_is_there,
    labels_and_notes_change_without_withdrawing_slots
);
