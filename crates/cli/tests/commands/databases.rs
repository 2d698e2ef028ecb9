//! Databases that `duly serve` names for tasks.

use std::path::Path;

use duly_testkit::Node;
use duly_testkit::command::Ended;

use crate::{DULY, run};

async fn ask(node: &Node, tenant: &str, statement: &str) -> anyhow::Result<Ended> {
    let payload = format!(r#"{{"source": "notes", "statement": "{statement}"}}"#);
    let line = ["task", "run", "sql", "-d", &payload, "--retries", "0", "--wait"];
    let rest = ["--server", node.url(), "--as-tenant", tenant];
    run(&[&line[..], &rest].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_source_is_there_for_its_tenants_alone() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    // A database like any other: that of a server which has ended.
    let own = format!("sqlite:{}", path("notes.db"));
    Node::start(Path::new(DULY), "first", &own, &[]).await?.terminate().await?;
    let sources = format!("{{notes: {{url: '{own}', tenants: [acme]}}}}");
    std::fs::write(path("duly.yaml"), format!("insecure: true\nsources: {sources}\n"))?;
    let store = format!("sqlite:{}", path("duly.db"));
    let config = path("duly.yaml");
    let node = Node::start_with_keys(Path::new(DULY), "second", &store, &config, &[]).await?;

    let found = ask(&node, "acme", "SELECT count(*) > 0 AS known FROM sqlite_schema").await?;
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(found.json()?["rows"][0]["known"], 1, "{found:?}");
    let foreign = ask(&node, "default", "SELECT 1 AS x").await?;
    assert_eq!(foreign.code, Some(6), "{foreign:?}");
    assert!(foreign.stderr.contains("SQL_SOURCE"), "{foreign:?}");
    assert!(!foreign.stderr.contains("notes.db"), "{foreign:?}");
    let written = ask(&node, "acme", "DROP TABLE task").await?;
    assert_eq!(written.code, Some(6), "{written:?}");
    assert!(written.stderr.contains("read-only"), "{written:?}");
    node.kill().await
}
