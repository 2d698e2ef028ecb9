//! The grant by itself, with candidates that come from anywhere.

use std::time::Duration;

use duly_core::name::QueueName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::Home;
use duly_core::state::Status;

use crate::world::World;

/// Leases these candidates to the session's second claim, in the lane of the default queue.
const GRANT: &str = "SELECT g.tasks::text[] FROM duly.lane l, duly.grant_tasks(
        $1::text::uuid, 2, ARRAY(SELECT c.id::uuid FROM unnest($2::text[]) c(id)), ARRAY[l.id], $3,
        60000, 60000, 5000, 1000, true) g
    WHERE l.queue = 'default'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_are_granted_if_they_are_pending_and_due_and_in_the_lane() {
    let Some(world) = World::new().await else { return };
    let session = world.open(0, 1, Home::Local).await;
    let running = world.task(1, Duration::ZERO);
    world.submit(0, vec![running.clone()]).await;
    assert_eq!(world.claim(0, session, 1).await.len(), 1);
    let (due, future) = (world.task(2, Duration::ZERO), world.task(3, Duration::from_secs(60)));
    let mut foreign = world.task(4, Duration::ZERO);
    foreign.lane.queue = QueueName::new("other").unwrap();
    let absent = world.task(5, Duration::ZERO);
    let candidates: Vec<_> =
        [&absent, &foreign, &future, &due, &running].iter().map(|it| it.id.to_string()).collect();
    world.submit(0, vec![due.clone(), future.clone(), foreign.clone()]).await;

    let (client, _driver) = world.scratch.connect().await;
    let now = world.clock.now().millis();
    let row = client.query_one(GRANT, &[&session.to_string(), &candidates, &now]).await.unwrap();
    assert_eq!(row.get::<_, Vec<String>>(0), [due.id.to_string()]);
    let live = "SELECT live FROM duly.grant_log WHERE sequence = 2";
    assert_eq!(client.query_one(live, &[]).await.unwrap().get::<_, i32>(0), 1);
    for (task, status) in [
        (&due, Status::Running),
        (&running, Status::Running),
        (&future, Status::Pending),
        (&foreign, Status::Pending),
    ] {
        assert_eq!(world.status(task.id).await, status);
    }
}
