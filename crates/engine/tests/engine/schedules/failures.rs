//! A store that fails, and damaged schedules.

use super::*;

#[tokio::test(start_paused = true)]
async fn slots_wait_for_a_store_that_does_not_answer() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    settle().await;
    world.faults.set_schedules_fail(true);
    pass(25 * SECOND).await;
    assert!(world.tasks_of("s").await.is_empty());
    world.faults.set_schedules_fail(false);
    let ran = world.work(15 * SECOND).await;
    let records = world.records().await;
    let decided: Vec<_> = records.iter().map(|record| record.slot).collect();
    assert_eq!(decided, view.rule.slots(start, world.now().await, 100));
    assert!(!ran.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_decision_whose_answer_is_lost_counts_once() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    world.faults.lose_decisions(3);
    let ran: Vec<_> = world.work(MINUTE + SECOND).await.into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(ran, view.rule.slots(start, world.now().await, 100));
    assert_eq!(slots(&world.tasks_of("s").await), ran);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_be_decided_does_not_stop_others() {
    let world = World::new().await;
    let bad = world.put_named("bad", new(every("10s"), echo())).await;
    world.faults.fail_decisions_of(Some(bad.schedule.id));
    for n in 0..9 {
        world.put_named(&format!("s{n}"), new(every("10s"), echo())).await;
    }
    let ran = world.work(25 * SECOND).await;
    assert_eq!(ran.len(), 2 * 9);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    world.faults.fail_decisions_of(None);
    world.work(MINUTE * 2).await;
    assert!(!world.tasks_of("bad").await.is_empty(), "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_damaged_schedule_is_left_out() {
    let world = World::new().await;
    let damaged =
        |called: &str, rule: &str, template: String| duly_core::ports::store::PutSchedule {
            id: duly_core::id::ScheduleId::mint(Timestamp::EPOCH, called.len() as u64),
            tenant: tenant(),
            name: name(called),
            definition: duly_core::schedule::Definition {
                rule: Arc::from(rule),
                template: template.into(),
            },
            labels: BTreeMap::new(),
            status: ScheduleStatus::Active,
            note: None,
            managed: false,
            expected: Expected::Any,
        };
    world.store.put_schedule(damaged("x", "{", echo().encode())).await.unwrap();
    let rule = r#"{"every": "10s"}"#;
    world.store.put_schedule(damaged("xx", rule, "{".to_owned())).await.unwrap();
    world.put(every("10s")).await;
    assert_eq!(world.work(MINUTE + SECOND).await.len(), 6);
    let read = world.engine.schedule(&tenant(), &name("x")).await;
    assert!(matches!(read, Err(ScheduleError::Damaged)));
    world.put_named("x", new(every("10s"), echo())).await;
    world.work(MINUTE).await;
    assert!(!world.tasks_of("x").await.is_empty(), "it can be replaced");
}
