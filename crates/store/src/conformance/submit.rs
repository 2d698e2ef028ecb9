//! Storing tasks.

use std::time::Duration;

use duly_core::limits::{LANES, STORE_BATCH};
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{Error, Submit, Submitted};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;

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
        assert_eq!((stored.run_at, stored.created_at), (task.run_at, task.created_at));
        assert_eq!((stored.granted_at, stored.finished_at), (None, None));
        assert_eq!((stored.run, stored.charged, stored.epoch, stored.losses), (1, 0, 0, 0));
        assert_eq!((stored.retries, stored.timeout), (7, task.timeout));
        assert_eq!(stored.labels, task.labels);
        assert_eq!(stored.payload, task.payload);
        assert_eq!((stored.result, stored.error, stored.session), (None, None, None));
    }
}

pub async fn a_repeated_id_changes_nothing(harness: Harness) {
    let task = harness.task("email");
    let id = harness.submit_one(task.clone()).await;
    let changed = NewTask { payload: "1".into(), ..task };
    assert_eq!(harness.submit(&[changed.clone(), changed]).await, [Submitted::Stored; 2]);
    assert_eq!(&*harness.get(id).await.payload, "{}");
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim(session, 10).await.len(), 1);
    let mut elsewhere = harness.task("email");
    elsewhere.id = id;
    elsewhere.lane.queue = QueueName::new("elsewhere").unwrap();
    assert_eq!(harness.submit(&[elsewhere.clone()]).await, [Submitted::Stored]);
    let (tenant, queue) = (&elsewhere.lane.tenant, &elsewhere.lane.queue);
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
        assert!(harness.submit(&tasks).await.iter().all(|answer| *answer == Submitted::Stored));
    }
    let answers = harness.submit(&[in_lane(LANES), in_lane(0)]).await;
    assert_eq!(answers, [Submitted::LaneLimit, Submitted::Stored]);
}
