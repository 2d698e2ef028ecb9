//! The example workflows on real servers, by the commands of docs/workflows.md. What stands in the `text`
//! block below a block of commands must be printed; `…` stands for any text.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use duly_client::wire::{TaskView, WorkflowView};
use duly_client::{Client, WorkflowQuery};
use duly_core::state::Status;
use duly_core::workflow::WorkflowStatus;
use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::{Node, command};
use serde_json::{Value, json};

use crate::{DULY, World};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of the examples: commands, and what they print.
fn documented(page: &str) -> anyhow::Result<Vec<(String, String)>> {
    let page = fs::read_to_string(repository().join(page))?;
    let (_, examples) = page.split_once("\n## Examples\n").context("there are no examples")?;
    let blocks = examples.split("\n```sh\n").skip(1);
    let parts = blocks.map(|block| {
        let (commands, rest) = block.split_once("\n```\n").context("the block has no end")?;
        let printed = rest.strip_prefix("\n```text\n").context("what do they print?")?;
        let (printed, _) = printed.split_once("\n```\n").context("the block has no end")?;
        Ok((commands.to_owned(), printed.to_owned()))
    });
    parts.collect()
}

/// Runs the commands of a page in an empty directory with the examples, as from a clone.
pub(crate) async fn run_documented(page: &str, url: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_str().context("a temporary path is plain")?;
    fs::create_dir(folder.path().join("bin"))?;
    symlink(DULY, folder.path().join("bin/duly"))?;
    symlink(repository().join("examples"), folder.path().join("examples"))?;
    for (commands, expected) in documented(page)? {
        let script = format!("cd \"$1\"\nPATH=\"$1/bin:$PATH\"\n{commands}");
        let line = ["-e", "-u", "-o", "pipefail", "-c", &script, "bash", path];
        let ended = command::run_with(Path::new("bash"), &line, &[("DULY_SERVER", url)]).await?;
        assert_eq!(ended.code, Some(0), "{commands}: {ended:?}");
        let printed = ended.stdout.trim_end();
        assert!(fits(&expected, printed), "{commands}: {expected}\nis not\n{printed}");
    }
    Ok(())
}

/// Whether the text has the parts of the pattern one after the other, and nothing else.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('…') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| fits(rest, &text[at..]))
}

/// The only workflow of this name, which has succeeded, and its tasks by key.
async fn ended(
    client: &Client,
    name: &str,
) -> anyhow::Result<(WorkflowView, BTreeMap<String, TaskView>)> {
    let query = WorkflowQuery { name: Some(name.to_owned()), ..WorkflowQuery::default() };
    let page = client.list_workflows(&query).await?;
    assert_eq!(page.items.len(), 1, "{name}: {page:?}");
    let id = page.items[0].workflow_id;
    let workflow = client.get_workflow(id, None).await?;
    assert_eq!(workflow.summary.status, WorkflowStatus::Success, "{workflow:?}");
    let mut tasks = BTreeMap::new();
    for node in client.workflow_graph(id, false).await?.nodes {
        tasks.insert(node.key, client.get_task(node.task_id, None).await?);
    }
    Ok((workflow, tasks))
}

fn result(task: &TaskView) -> anyhow::Result<Value> {
    let result = task.result.as_ref().with_context(|| format!("no result: {task:?}"))?;
    Ok(serde_json::from_str(result.get())?)
}

async fn results_are_passed_on(client: &Client) -> anyhow::Result<()> {
    let (_, tasks) = ended(client, "etl").await?;
    assert!(tasks.values().all(|task| task.status == Status::Success), "{tasks:?}");
    let loaded = json!({"rows": 1200, "note": "clean and enrich are done"});
    assert_eq!(result(&tasks["load"])?, loaded);
    Ok(())
}

async fn a_failure_is_compensated(client: &Client) -> anyhow::Result<()> {
    let (workflow, tasks) = ended(client, "order").await?;
    assert_eq!(workflow.handled_failures, 1, "{workflow:?}");
    let statuses: Vec<_> = tasks.iter().map(|(key, task)| (key.as_str(), task.status)).collect();
    let expected = [
        ("charge", Status::Failed),
        ("give-back", Status::Success),
        ("notify", Status::Success),
        ("reserve", Status::Success),
        ("ship", Status::Cancelled),
    ];
    assert_eq!(statuses, expected);
    let failure = tasks["charge"].error.as_ref().context("no error")?;
    assert_eq!(result(&tasks["give-back"])?, json!({"because": failure.message}));
    Ok(())
}

async fn tasks_are_added(client: &Client) -> anyhow::Result<()> {
    let (_, tasks) = ended(client, "map").await?;
    let keys: Vec<_> = tasks.keys().map(String::as_str).collect();
    let added = ["each.collect", "each.item-0", "each.item-1", "each.item-2"];
    assert_eq!(keys, [&["each"], &added[..], &["list"]].concat());
    assert!(tasks.values().all(|task| task.status == Status::Success), "{tasks:?}");
    for page in 1..=3 {
        let item = &tasks[&format!("each.item-{}", page - 1)];
        assert_eq!(result(item)?, json!({"page": page}));
    }
    assert_eq!(result(&tasks["each.collect"])?, json!({"all": "pages"}));
    Ok(())
}

async fn try_examples(url: &str, client: &Client) -> anyhow::Result<()> {
    run_documented("docs/workflows.md", url).await?;
    results_are_passed_on(client).await?;
    a_failure_is_compensated(client).await?;
    tasks_are_added(client).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_commands_work_on_a_file() -> anyhow::Result<()> {
    let world = World::start().await?;
    try_examples(world.server.url(), world.server.client()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_commands_work_on_postgres() -> anyhow::Result<()> {
    let Some(server) = scratch::server() else { return Ok(()) };
    let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
    let node = Node::start(Path::new(DULY), "examples", &scratch.url(), &[]).await?;
    try_examples(node.url(), &node.client).await
}

#[test]
fn patterns_can_fail() {
    assert!(fits("a…c\nd", "a b c\nd") && fits("a…", "a") && fits("a", "a"));
    for (pattern, text) in [("a", "ab"), ("a…c", "a b"), ("a…c", "b c"), ("a…c", "a c d")] {
        assert!(!fits(pattern, text), "{pattern:?} must not fit {text:?}");
    }
}
