//! Storing tasks.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::{LANES, STORE_BATCH};
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{Error, Submit, Submitted};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::success;

pub async fn a_stored_task_reads_back_as_it_was(harness: Harness) {
    for size in [1, 511, 512, 513, 5_000, 1_000_000] {
        let task = NewTask {
            retries: 7,
            timeout: Some(Duration::from_millis(1_500)),
            labels: [("customer".to_owned(), "42 – ünïcode \"quoted\"".to_owned())].into(),
            payload: format!("\"{}\"", "x".repeat(size)).into(),
            ..harness.task_at("email", 9)
        };
        let id = harness.submit_one(task.clone()).await;
        let stored = harness.get(id).await;
        assert_eq!(stored.lane, task.lane);
        assert_eq!(stored.status, Status::Pending);
        assert_eq!(stored.priority, task.priority);
        assert_eq!((stored.run_at, stored.created_at), (task.run_at, harness.now()));
        assert_eq!((stored.granted_at, stored.finished_at), (None, None));
        assert_eq!((stored.run, stored.charged, stored.epoch, stored.losses), (1, 0, 0, 0));
        assert_eq!((stored.retries, stored.timeout), (7, task.timeout));
        assert_eq!(stored.labels, task.labels);
        assert_eq!(stored.payload, task.payload);
        assert_eq!((stored.result, stored.error, stored.session), (None, None, None));
    }
}

pub async fn a_delay_counts_from_the_stores_clock(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let minute = Duration::from_secs(60);
    harness.advance(minute);
    let delay = Duration::from_secs(2);
    // The caller's clock is a minute behind, or ahead.
    for (number, believed) in
        [harness.now().minus(minute), harness.now().plus(minute)].into_iter().enumerate()
    {
        let id = TaskId::mint(believed.plus(delay), u32::try_from(number).unwrap(), 9);
        let run_at = believed.plus(delay);
        let task = NewTask { id, run_at, delay: Some(delay), ..harness.task("email") };
        let offer = Some(harness.next_claim(session, 1));
        let batch = Submit { tasks: vec![task.clone()], offer };
        let stored = harness.store().submit(batch.clone()).await.unwrap();
        assert_eq!(stored, [harness.stored()], "it is not handed off");
        let task = harness.get(id).await;
        assert_eq!((task.created_at, task.run_at), (harness.now(), harness.now().plus(delay)));
        let asked = harness.ask(harness.next_claim(session, 1)).await;
        assert_eq!((asked.leases.len(), asked.next_due), (0, Some(task.run_at)));
        harness.advance(delay);
        let again = harness.store().submit(batch).await.unwrap();
        assert_eq!(again, [Submitted::Stored { at: task.created_at }], "the first answer counts");
        let lease = harness.claim_one(session).await;
        assert_eq!((lease.task, lease.run_at), (id, task.run_at));
        harness.finish_one(session, &lease, success()).await;
    }
}

pub async fn a_task_without_delay_is_due_at_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let later = harness.now().plus(Duration::from_secs(60));
    let now = Some(Duration::ZERO);
    let task = NewTask { run_at: later, delay: now, ..harness.task("email") };
    let offer = Some(harness.next_claim(session, 1));
    let batch = Submit { tasks: vec![task], offer };
    let answers = harness.store().submit(batch).await.unwrap();
    let granted_at = harness.now();
    assert_eq!(answers, [Submitted::HandedOff { epoch: 1, granted_at }]);
}

pub async fn a_repeated_id_changes_nothing(harness: Harness) {
    let task = harness.task("email");
    let id = harness.submit_one(task.clone()).await;
    let changed = NewTask { payload: "1".into(), ..task };
    assert_eq!(harness.submit(&[changed.clone(), changed]).await, [harness.stored(); 2]);
    assert_eq!(&*harness.get(id).await.payload, "{}");
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim(session, 10).await.len(), 1);
    let mut other = harness.task("email");
    other.id = id;
    other.lane.queue = QueueName::new("other").unwrap();
    assert_eq!(harness.submit(&[other.clone()]).await, [harness.stored()]);
    let (tenant, queue) = (&other.lane.tenant, &other.lane.queue);
    assert_eq!(harness.store().queue(tenant, queue).await.unwrap(), None);
}

pub async fn a_batch_over_the_limit_is_refused_whole(harness: Harness) {
    let tasks: Vec<_> = (0..=STORE_BATCH).map(|_| harness.task("email")).collect();
    let id = tasks[0].id;
    let refused = harness.store().submit(Submit { tasks, offer: None }).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { limit: STORE_BATCH, .. }), "{refused}");
    let tenant = duly_core::name::TenantName::default_tenant();
    assert_eq!(harness.store().get(&tenant, id).await.unwrap(), None);
}

pub async fn lanes_are_bounded(harness: Harness) {
    let in_lane = |number: usize| {
        let mut task = harness.task("email");
        task.lane.task_type = TypeName::new(&format!("type-{number}")).unwrap();
        task
    };
    for start in (0..LANES).step_by(STORE_BATCH) {
        let tasks: Vec<_> = (start..start + STORE_BATCH).map(in_lane).collect();
        assert!(harness.submit(&tasks).await.iter().all(|answer| *answer == harness.stored()));
    }
    let answers = harness.submit(&[in_lane(LANES), in_lane(0)]).await;
    assert_eq!(answers, [Submitted::LaneLimit, harness.stored()]);
}
