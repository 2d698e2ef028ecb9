//! A transaction that is open for long commits its task behind where claims look by then: others of
//! the same lane have been submitted and granted meanwhile.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::submit::Draft;
use duly_engine::Engine;
use duly_testkit::wait::{observe_for, within};
use duly_worker::Registry;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::world::{Telling, World};

/// How soon after the commit the late task must run, on a machine that is busy.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_committed_late_is_not_forgotten() -> anyhow::Result<()> {
    hold(Duration::from_secs(3), Duration::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_is_one_that_is_committed_half_a_minute_late() -> anyhow::Result<()> {
    hold(Duration::from_secs(30), Duration::from_millis(10)).await
}

/// Holds a transaction open while two nodes are busy in its lane, and stay so: with so much time
/// between two submits.
async fn hold(time: Duration, pace: Duration) -> anyhow::Result<()> {
    let Some(mut world) = World::start(2).await else { return Ok(()) };
    let (tell, mut told) = unbounded_channel();
    world.work(&Registry::new().with("email", Telling(tell))).await;
    let app = world.connect().await;
    app.submit("'email'").await?;
    app.batch_execute("BEGIN").await?;
    let late = app.submit("'email'").await?;
    let mut runs = HashMap::new();
    let held = async {
        observe_for(time).await;
        app.batch_execute("COMMIT").await?;
        let committed = Instant::now();
        until(&mut told, &mut runs, late).await?;
        anyhow::Ok(committed.elapsed())
    };
    let took = tokio::select! {
        took = held => took?,
        stopped = keep_busy(&world.engines[0], pace) => return stopped,
        stopped = keep_busy(&world.engines[1], pace) => return stopped,
    };
    assert!(took < SOON, "it took {took:?}");
    let expected = usize::try_from(time.as_millis() / 200)?;
    assert!(runs.len() > expected, "the lane was not busy: {}", runs.len());
    let repeated: Vec<_> = runs.iter().filter(|(_, runs)| **runs != 1).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    Ok(())
}

/// Submits tasks that are due a little later, so that they are claimed and not handed over.
async fn keep_busy(engine: &Engine, pace: Duration) -> anyhow::Result<()> {
    let draft = Draft {
        task_type: Some("email".to_owned()),
        delay_seconds: Some(0.05),
        ..Draft::default()
    };
    let spec = draft.check().unwrap();
    loop {
        engine.submit(&TenantName::default_tenant(), vec![spec.clone(); 3]).await?;
        observe_for(pace).await;
    }
}

/// Counts what runs until this task does.
async fn until(
    told: &mut UnboundedReceiver<TaskId>,
    runs: &mut HashMap<TaskId, u32>,
    task: TaskId,
) -> anyhow::Result<()> {
    let heard = async {
        while let Some(next) = told.recv().await {
            *runs.entry(next).or_default() += 1;
            if next == task {
                break;
            }
        }
    };
    within("the task runs", heard).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_is_committed_late_delays_no_other_and_is_found() -> anyhow::Result<()> {
    let Some(mut world) = World::start(2).await else { return Ok(()) };
    let (tell, mut told) = unbounded_channel();
    world.work(&Registry::new().with("email", Telling(tell))).await;
    let app = world.connect().await;
    app.batch_execute("BEGIN").await?;
    let late = app.submit("'email', queue => 'late'").await?;
    // Lanes with higher numbers, which every node knows before it can know of the late one.
    let mut runs = HashMap::new();
    for queue in ["one", "two", "three"] {
        let task = SubmitRequest { queue: Some(queue.to_owned()), ..SubmitRequest::new("email") };
        let id = within("it is stored", world.rest.submit(&task)).await??.task_id;
        until(&mut told, &mut runs, id).await?;
    }
    app.batch_execute("COMMIT").await?;
    until(&mut told, &mut runs, late).await?;
    let task = SubmitRequest { queue: Some("late".to_owned()), ..SubmitRequest::new("email") };
    let id = world.rest.submit(&task).await?.task_id;
    until(&mut told, &mut runs, id).await
}
