//! `duly node list`: which processes of the server are alive.

use std::sync::Arc;

use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::Node;
use duly_testkit::wait::{PATIENCE, eventually};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::{DULY, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_killed_is_silent_and_later_hidden() -> anyhow::Result<()> {
    let Some(server) = scratch::server() else { return Ok(()) };
    let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
    let flags = ["--session-ttl", "2s"];
    let first = Node::start(DULY.as_ref(), "first", &scratch.url(), &flags).await?;
    let second = Node::start(DULY.as_ref(), "second", &scratch.url(), &flags).await?;
    let list = ["node", "list", "--server", first.url()];
    let ended = run(&list).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches(" alive ").count(), 2, "{ended:?}");
    second.kill().await?;
    let is_silent = || async {
        let ended = run(&list).await.ok()?;
        let line = ended.stdout.lines().find(|line| line.contains("second"))?;
        line.contains(" silent ").then_some(())
    };
    eventually("the second node is silent", PATIENCE, is_silent).await?;
    let (client, connection) = tokio_postgres::connect(&scratch.url(), NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let age = "UPDATE duly.node SET checked_at = checked_at - 700000 WHERE name = 'second'";
    client.batch_execute(age).await?;
    let ended = run(&list).await?;
    assert!(!ended.stdout.contains("second"), "{ended:?}");
    assert!(ended.stdout.contains("first") && ended.stderr.contains("--all"), "{ended:?}");
    let ended = run(&[&list[..], &["--all"]].concat()).await?;
    assert!(ended.stdout.contains("second"), "{ended:?}");
    Ok(())
}
