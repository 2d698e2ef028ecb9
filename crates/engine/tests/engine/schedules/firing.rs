//! When schedules fire, and on which node.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_slot_starts_one_task_on_time() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("7s")).await;
    let expected = view.rule.slots(start, start.plus(MINUTE * 5), 100);
    assert_eq!(view.next, expected.first().copied());
    let ran = world.work(MINUTE * 5).await;
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    let tasks = world.tasks_of("s").await;
    assert_eq!(slots(&tasks), expected);
    let records = world.records().await;
    assert_eq!(records.iter().map(|record| record.slot).collect::<Vec<_>>(), expected);
    assert!(records.iter().all(|it| it.status == Some(RunStatus::Task(Status::Success))));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_with_one_slot_fires_once() {
    let world = World::new().await;
    let at = world.now().await.plus(90 * SECOND);
    let draft = ScheduleDraft { at: Some(at.to_string()), ..ScheduleDraft::default() };
    world.put(draft).await;
    let ran = world.work(MINUTE * 60).await;
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [at]);
    let view = world.engine.schedule(&tenant(), &name("s")).await.unwrap().unwrap();
    assert_eq!(view.next, None);
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_without_a_gap_and_without_a_second_task() {
    let mut world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    let mut ran = BTreeSet::new();
    for _ in 0..5 {
        ran.extend(world.work(23 * SECOND).await.into_iter().map(|(slot, _)| slot));
        world.engine.close().await;
        // Less than what counts as missed.
        pass(4 * SECOND).await;
        world.start_again().await;
    }
    ran.extend(world.work(20 * SECOND).await.into_iter().map(|(slot, _)| slot));
    let expected = view.rule.slots(start, world.now().await, 100);
    assert_eq!(ran.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(slots(&world.tasks_of("s").await), expected);
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_decides_and_the_next_one_goes_on() {
    let world = World::among_others().await;
    let start = world.now().await;
    let view = world.put(every("5s")).await;
    let first = world.work(MINUTE).await;
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    let meanwhile = world.faults.calls("decide_slots");
    pass(20 * SECOND).await;
    assert_eq!(world.faults.calls("decide_slots"), meanwhile);
    world.faults.another_leads.store(false, Ordering::SeqCst);
    let second = world.work(MINUTE * 2 + SECOND).await;
    let ran: Vec<_> = first.into_iter().chain(second).map(|(slot, _)| slot).collect();
    let records = world.records().await;
    let decided: Vec<_> = records.iter().map(|record| record.slot).collect();
    assert_eq!(decided, view.rule.slots(start, world.now().await, 100), "none is left out");
    let started: Vec<_> =
        records.iter().filter(|it| skipped(it).is_none()).map(|it| it.slot).collect();
    assert_eq!(ran, started, "each runs once");
}

#[tokio::test(start_paused = true)]
async fn runs_that_may_overlap_are_stored_ahead_and_start_without_the_coordinator() {
    let world = World::among_others().await;
    world.put(overlapping("allow", every("10s"))).await;
    pass(TTL).await;
    let waiting = world.tasks_of("s").await;
    assert!(waiting.len() >= 5, "{}", waiting.len());
    let horizon = world.now().await.plus(LOOK_AHEAD);
    assert!(waiting.iter().all(|task| task.run_at <= horizon));
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    let calls = world.faults.calls("decide_slots");
    let ran = world.work(25 * SECOND).await;
    assert_eq!(world.faults.calls("decide_slots"), calls);
    let on_time: Vec<_> = ran.iter().filter(|(_, late)| *late <= LATE).collect();
    assert!(on_time.len() >= 2, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn other_runs_are_decided_when_their_slot_has_come() {
    let world = World::new().await;
    world.put(every("1m")).await;
    pass(19 * SECOND).await;
    assert!(world.tasks_of("s").await.is_empty());
    pass(2 * SECOND).await;
    assert_eq!(world.tasks_of("s").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_starts_at_its_slot_with_all_its_tasks() {
    let world = World::new().await;
    let member = |key: &str, needs: &[&str]| Member {
        key: key.to_owned(),
        spec: draft("echo").check().unwrap(),
        depends_on: needs
            .iter()
            .map(|key| Needed { key: (*key).to_owned(), on: Condition::Success })
            .collect(),
    };
    let spec = WorkflowSpec {
        name: "report".to_owned(),
        labels: BTreeMap::new(),
        fail_fast: false,
        idempotency_key: None,
        members: Members::of_workflow(vec![member("b", &["a"]), member("a", &[])]).unwrap(),
    };
    let template = Template::workflow(spec).unwrap();
    // Workflows are not stored ahead, whatever their overlap rule is.
    let draft = overlapping("allow", every("1m"));
    world.put_named("s", new(draft, template)).await;
    pass(19 * SECOND).await;
    assert!(world.records().await.is_empty());
    pass(2 * SECOND).await;
    for _ in 0..2 {
        let lease = world.source.claim(10).await.unwrap();
        assert_eq!(lease.len(), 1);
        world.end(lease).await;
    }
    let record = world.records().await.remove(0);
    assert_eq!(record.status, Some(RunStatus::Workflow(WorkflowStatus::Success)));
    let SlotOutcome::Ran(SlotRun::Workflow(id)) = record.outcome else { panic!("nothing ran") };
    let workflow = world.engine.workflow(&tenant(), id).await.unwrap().unwrap().state.workflow;
    assert_eq!(workflow.labels[SCHEDULE_LABEL], "s");
    assert_eq!(workflow.labels[SLOT_LABEL], record.slot.to_string());
    let graph = world.engine.graph(&tenant(), id).await.unwrap().unwrap();
    assert!(graph.edges.iter().all(|edge| edge.parent < edge.child), "ids ascend along edges");
}

#[tokio::test(start_paused = true)]
async fn only_schedules_that_are_due_cost_anything() {
    let mut world = World::new().await;
    for n in 0..3_000 {
        let daily =
            ScheduleDraft { cron: Some("0 3 * * *".to_owned()), ..ScheduleDraft::default() };
        world.put_named(&format!("idle-{n}"), new(daily, echo())).await;
    }
    world.engine.close().await;
    world.start_again().await;
    settle().await;
    let reads = world.faults.calls("schedules_changed");
    world.put(every("1m")).await;
    let ran = world.work(MINUTE * 10).await;
    assert_eq!(ran.len(), 10);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    assert_eq!(world.faults.calls("decide_slots"), 10);
    let polls = world.faults.calls("schedules_changed") - reads;
    assert!(polls <= 11, "{polls}");
    assert_eq!(world.faults.calls("schedule_versions"), 0);
}

crate::stores::with_lost_hints!(
    all: a_workflow_starts_at_its_slot_with_all_its_tasks,
    other_runs_are_decided_when_their_slot_has_come
);

#[tokio::test(start_paused = true)]
async fn the_schedules_of_a_suspended_tenant_rest() {
    use duly_engine::command::tenants::TenantOrder;

    let world = World::new().await;
    world.put(every("1h")).await;
    let change = async |order| {
        world.engine.change_tenant(tenant(), order, Expected::Any).await.unwrap();
    };
    change(TenantOrder::Suspend { note: None }).await;
    pass(MINUTE * 150).await;
    assert!(world.records().await.is_empty(), "no slot is decided");
    change(TenantOrder::Resume).await;
    let ran = world.work(MINUTE).await;
    assert_eq!(ran.len(), 1, "the misfire rule runs the latest of the two");
    assert_eq!(world.work(MINUTE * 60).await.len(), 1, "and then it goes on");
}
