//! A task is there exactly if the transaction that submitted it was committed.

use std::time::{Duration, Instant};

use duly_core::state::Status;
use duly_testkit::wait::{PATIENCE, eventually, observe_for, within};
use duly_worker::Registry;
use tokio::sync::mpsc::unbounded_channel;

use super::world::{Telling, World};

/// Everything that a submit may write.
const ALL: &str = "SELECT (SELECT count(*) FROM duly.task) + (SELECT count(*) FROM duly.due)
    + (SELECT count(*) FROM duly.lane) + (SELECT count(*) FROM duly.idempotency)
    + (SELECT count(*) FROM pg_inherits WHERE inhparent = 'duly.task'::regclass)";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rolled_back_leaves_nothing() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let before = app.count(ALL).await;
    app.batch_execute("BEGIN").await.unwrap();
    app.submit("'email', queue => 'new', delay => '333 days', idempotency_key => 'k'")
        .await
        .unwrap();
    assert_eq!(app.count(ALL).await, before + 5, "a row in each table, and a day");
    app.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(app.count(ALL).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_committed_runs_soon_and_once() -> anyhow::Result<()> {
    let Some(mut world) = World::start(2).await else { return Ok(()) };
    let (tell, mut told) = unbounded_channel();
    world.work(&Registry::new().with("email", Telling(tell))).await;
    let app = world.connect().await;
    app.batch_execute("DROP TABLE IF EXISTS orders; BEGIN; CREATE TABLE orders (id int)").await?;
    let id = app.submit(r#"'email', '{"order": 1}'"#).await?;
    assert!(world.rest.get_task(id, None).await.is_err(), "it is invisible before the commit");
    app.batch_execute("COMMIT").await?;
    let committed = Instant::now();
    assert_eq!(within("it runs", told.recv()).await?, Some(id));
    let took = committed.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    let ended = || async {
        let task = world.rest.get_task(id, None).await.ok()?;
        task.status.is_terminal().then_some(task)
    };
    let task = eventually("it ends", PATIENCE, ended).await?;
    assert_eq!((task.status, task.epoch), (Status::Success, 1));
    // Two rounds of every node.
    observe_for(Duration::from_secs(2)).await;
    assert!(told.try_recv().is_err(), "it ran again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_all_there() {
    let Some(world) = World::start(1).await else { return };
    let one = |number: i64| {
        let url = world.url();
        async move {
            let app = super::world::App::connect(&url).await;
            // A lane that all want to make, one of its own, and a day that all want to make.
            app.submit(&format!("'email', '{number}', delay => '50 days'")).await.unwrap();
            app.submit(&format!("'email', queue => 'queue-{number}'")).await.unwrap();
            app.submit("'email', idempotency_key => 'the same'").await.unwrap()
        }
    };
    let (a, b, c, d) = tokio::join!(one(1), one(2), one(3), one(4));
    assert!(a == b && b == c && c == d, "one key is one task");
    let app = world.connect().await;
    assert_eq!(app.count("SELECT count(*) FROM duly.task").await, 9);
    assert_eq!(app.count("SELECT count(*) FROM duly.lane").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_time_keep_their_order() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let at = "'email', run_at => date_trunc('day', now()) + interval '2 days'";
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(app.submit(at).await.unwrap());
    }
    assert!(ids.is_sorted());
}
