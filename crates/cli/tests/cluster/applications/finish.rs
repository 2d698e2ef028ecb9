//! A handler that finishes in its own transaction: its effect and the outcome are one.

use std::sync::Arc;

use async_trait::async_trait;
use duly_client::wire::CancelRequest;
use duly_core::state::Status;
use duly_store::postgres::{FinishError, finish_in};
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_worker::{Context, Handler, HandlerError, Output, Registry};
use tokio::sync::{Notify, mpsc};

use super::world::{App, World};

const TASKS: i64 = 150;
const EFFECTS: &str = "DROP TABLE IF EXISTS effect; CREATE TABLE effect (task uuid NOT NULL)";

/// Has an effect, and may come to grief before or after its commit.
struct Unlucky {
    url: String,
}

impl Unlucky {
    async fn effect(&self, context: &Context) -> anyhow::Result<()> {
        // Another one with every grant: the end of an id is random.
        let fate = (u32::from(context.task().as_bytes()[15]) + 3 * context.epoch()) % 8;
        let mut app = App::connect(&self.url).await;
        let transaction = app.transaction().await?;
        let insert = format!("INSERT INTO effect VALUES ('{}')", context.task());
        transaction.batch_execute(&insert).await?;
        anyhow::ensure!(fate != 0, "it failed before it had finished");
        let fence = context.fence().expect("a worker beside a node knows its session");
        finish_in(&transaction, &fence, Some(r#"{"ok":true}"#)).await?;
        assert!(fate != 1, "it panicked before the commit");
        anyhow::ensure!(fate != 2, "it failed before the commit");
        transaction.commit().await?;
        assert!(fate != 3, "it panicked after the commit");
        anyhow::ensure!(fate != 4, "it failed after the commit");
        Ok(())
    }
}

#[async_trait]
impl Handler for Unlucky {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        context.log("on it");
        match self.effect(&context).await {
            Ok(()) => Output::json(&"what was committed counts, not this"),
            Err(error) => Err(HandlerError::retry("UNLUCKY", error.to_string())),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_as_many_effects_as_successes() -> anyhow::Result<()> {
    let Some(mut world) = World::start(2).await else { return Ok(()) };
    let app = world.connect().await;
    app.batch_execute(EFFECTS).await?;
    let fill = format!(
        "SELECT duly.submit('email', retries => 100, backoff => '{{\"strategy\":\"none\"}}')
         FROM generate_series(1, {TASKS})"
    );
    app.batch_execute(&fill).await?;
    world.work(&Registry::new().with("email", Unlucky { url: world.url() })).await;
    let open = "SELECT count(*) FROM duly.task WHERE status <> 3";
    let ended = || async { (app.count(open).await == 0).then_some(()) };
    eventually("all tasks succeed", PATIENCE * 2, ended).await?;
    assert_eq!(app.count("SELECT count(*) FROM effect").await, TASKS);
    assert_eq!(app.count("SELECT count(DISTINCT task) FROM effect").await, TASKS);
    let results =
        r#"SELECT count(*) FROM duly.task WHERE result = '{"ok":true}' AND error IS NULL"#;
    assert_eq!(app.count(results).await, TASKS);
    let attempts = app.count("SELECT count(*) FROM duly.attempt").await;
    assert!(attempts > TASKS / 10, "nothing went wrong: {attempts}");
    // Every batch hears in the end that its leases have.
    let live = "SELECT count(*) FROM duly.grant_log WHERE live <> 0";
    let told = || async { (app.count(live).await == 0).then_some(()) };
    eventually("no lease lives", PATIENCE, told).await?;
    assert_eq!(app.count("SELECT count(*) FROM duly.task WHERE sequence < 0").await, 0);
    let logs = "SELECT count(DISTINCT log.task) FROM duly.log JOIN duly.task t ON t.id = log.task
        AND t.epoch = log.epoch AND t.charged = log.attempt";
    assert_eq!(app.count(logs).await, TASKS, "what the last attempt said is kept");
    Ok(())
}

/// Does its work, waits, and then tries to finish.
struct Slow {
    url: String,
    go_on: Arc<Notify>,
    came_to: mpsc::UnboundedSender<&'static str>,
}

#[async_trait]
impl Handler for Slow {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let mut app = App::connect(&self.url).await;
        let transaction = app.transaction().await.unwrap();
        let insert = format!("INSERT INTO effect VALUES ('{}')", context.task());
        transaction.batch_execute(&insert).await.unwrap();
        self.came_to.send("work").ok();
        self.go_on.notified().await;
        let fence = context.fence().unwrap();
        let finished = finish_in(&transaction, &fence, None).await;
        // A careless handler goes on all the same.
        transaction.commit().await.unwrap();
        self.came_to
            .send(match finished {
                Ok(()) => "success",
                Err(FinishError::LeaseLost) => "loss",
                Err(_) => "error",
            })
            .ok();
        Ok(Output::none())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_lost_the_lease_commits_nothing() -> anyhow::Result<()> {
    let Some(mut world) = World::start(1).await else { return Ok(()) };
    let app = world.connect().await;
    app.batch_execute(EFFECTS).await?;
    let (came_to, mut progress) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let handler = Slow { url: world.url(), go_on: Arc::clone(&go_on), came_to };
    world.work(&Registry::new().with("email", handler)).await;
    let id = app.submit("'email'").await?;
    assert_eq!(within("it works", progress.recv()).await?, Some("work"));
    world.rest.cancel_task(id, &CancelRequest::default()).await?;
    go_on.notify_one();
    assert_eq!(within("it ends", progress.recv()).await?, Some("loss"));
    assert_eq!(app.count("SELECT count(*) FROM effect").await, 0);
    assert_eq!(world.rest.get_task(id, None).await?.status, Status::Cancelled);
    Ok(())
}
