//! `duly doctor`: what it says of a server that is not there.

use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::Node;
use duly_testkit::command::Ended;

use crate::{DULY, NOWHERE, World, run};

/// What it says of a check.
fn finding(ended: &Ended, check: &str) -> anyhow::Result<serde_json::Value> {
    let findings = ended.json()?;
    let found = findings.as_array().into_iter().flatten().find(|one| one["check"] == check);
    Ok(found.unwrap_or_else(|| panic!("no {check}: {findings}")).clone())
}

#[tokio::test]
async fn a_server_that_died_is_a_failed_check() -> anyhow::Result<()> {
    let World { server, data } = World::start().await?;
    let folder = data.path().to_str().expect("a temporary path is plain");
    let ask = ["doctor", "--data", folder, "--server", NOWHERE, "-o", "json"];
    let ended = run(&ask).await?;
    assert_eq!(ended.code, Some(1), "another address: {ended:?}");
    let found = finding(&ended, "server")?;
    let pid = format!("process {} has the database open", server.pid());
    assert!(found["detail"].as_str().is_some_and(|text| text.contains(&pid)), "{found}");
    let remedy = found["remedy"].as_str().unwrap_or_default();
    assert!(remedy.contains("--server"), "{found}");
    let url = server.url().to_owned();
    server.kill().await?;
    let ended = run(&["doctor", "--data", folder, "--server", &url, "-o", "json"]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = finding(&ended, "server")?;
    assert_eq!(found["state"], "fail", "{found}");
    let remedy = found["remedy"].as_str().unwrap_or_default();
    assert!(remedy.contains("duly dev --data"), "{found}");
    Ok(())
}

#[tokio::test]
async fn a_fresh_machine_has_no_server_and_no_fault() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("none");
    let data = data.to_str().expect("a temporary path is plain");
    // One that is named must be there.
    let ended = run(&["doctor", "--data", data, "--server", NOWHERE]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stdout.contains("FAILED") && ended.stderr.contains("1 check failed"),
        "{ended:?}"
    );
    // The default address may be in use by another program on the machine of this test.
    let ended = run(&["doctor", "--data", data, "-o", "json"]).await?;
    let found = finding(&ended, "server")?;
    if found["detail"].as_str().is_some_and(|text| text.starts_with("nothing answers")) {
        assert_eq!((ended.code, &found["state"]), (Some(0), &"absent".into()), "{ended:?}");
        assert!(ended.stderr.contains("no server runs yet; start one: duly dev"), "{ended:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_database_is_looked_at() -> anyhow::Result<()> {
    let nothing = "postgres://duly:secret@127.0.0.1:1/duly";
    let ended = run(&["doctor", "--store", nothing, "-o", "json"]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = finding(&ended, "postgresql")?;
    assert!(found["detail"].as_str().is_some_and(|text| text.contains("127.0.0.1:1/duly")));
    assert!(!ended.stdout.contains("secret") && !ended.stderr.contains("secret"), "{ended:?}");

    let Some(server) = scratch::server() else { return Ok(()) };
    let scratch = Scratch::new(&server, std::sync::Arc::new(SystemClock::default())).await;
    let node = Node::start(DULY.as_ref(), "one", &scratch.url(), &[]).await?;
    let store = ["doctor", "--store", &scratch.url(), "-o", "json", "--server"].map(str::to_owned);
    let store: Vec<_> = store.iter().map(String::as_str).collect();
    let ended = run(&[&store[..], &[node.url()]].concat()).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (check, words) in [("postgresql", "at "), ("encoding", "UTF8"), ("schema", "all ")] {
        let found = finding(&ended, check)?;
        assert_eq!(found["state"], "ok", "{found}");
        assert!(found["detail"].as_str().is_some_and(|text| text.contains(words)), "{found}");
    }
    let ended = run(&[&store[..], &[NOWHERE]].concat()).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = finding(&ended, "server")?;
    let address = node.url().to_owned();
    assert!(found["remedy"].as_str().is_some_and(|text| text.contains(&address)), "{found}");
    Ok(())
}
