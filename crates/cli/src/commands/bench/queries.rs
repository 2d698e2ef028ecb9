//! How long queries take on a large file, over REST: by default a million ended tasks, a fifth as
//! many waiting ones, and large workflows.

mod fill;
mod held;
mod workflows;

use std::time::Instant;

use anyhow::{Context as _, ensure};
use duly_core::limits::SCAN_ROWS;
use serde::Deserialize;

use self::fill::Samples;
use self::held::HeldLeases;
use super::figures::{Figure, Target, percentiles};
use super::http::{Connection, get};
use super::rest::Server;
use super::run::Run;
use super::store_site::StoreSite;

/// Queries of each kind.
const SAMPLES: usize = 100;
/// The target of the 95th percentile of each kind.
const TARGET_MILLIS: f64 = 50.0;
/// The same for a graph, which has all tasks of a workflow.
const GRAPH_TARGET_MILLIS: f64 = 300.0;

/// The queries, each time with the cursor of the previous answer; `{id}` is a different task each
/// time, `{waiting}` a waiting one, and `{workflow}` the next of a few workflows.
const REQUESTS: &[(&str, &str)] = &[
    ("one task", "/tasks/{id}"),
    ("explain", "/tasks/{waiting}/explain"),
    ("queues", "/queues"),
    ("queue statistics", "/queues/mail/stats"),
    ("list", "/tasks"),
    ("list status:PENDING", "/tasks?filter=status:PENDING"),
    ("list status:RUNNING", "/tasks?filter=status:RUNNING"),
    ("list status:SUCCESS", "/tasks?filter=status:SUCCESS"),
    ("list status:FAILED", "/tasks?filter=status:FAILED"),
    ("list status:CANCELLED", "/tasks?filter=status:CANCELLED"),
    ("list queue:", "/tasks?filter=queue:mail"),
    ("list type:", "/tasks?filter=type:email"),
    ("list label.customer:", "/tasks?filter=label.customer:42"),
    ("list since:", "/tasks?filter=since:24h"),
    ("list, all terms", "/tasks?filter=status:SUCCESS%20queue:mail%20type:email%20since:7d"),
    ("list worker:", "/tasks?filter=worker:fill"),
    ("list error:", "/tasks?filter=error:refused"),
    ("list, no match", NO_MATCH),
    ("dead letters", "/dlq"),
    ("dead letters label.customer:", "/dlq?filter=label.customer:42"),
    ("dead groups", "/dlq/groups"),
    ("dead groups since:", "/dlq/groups?filter=since:7d%20queue:mail"),
    ("dead groups error:", "/dlq/groups?filter=error:refused"),
    ("one workflow", "/workflows/{workflow}"),
    ("graph of a workflow", "/workflows/{workflow}/graph"),
    ("list workflow:", "/tasks?filter=workflow:{first workflow}"),
];

/// No task matches and no index helps: every page reads as many tasks as it may.
const NO_MATCH: &str = "/tasks?filter=label.customer:none";

pub(super) const STEPS: usize = 2 + REQUESTS.len();

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    let site = run.new_site("queries").await?;
    let StoreSite::Folder(folder) = &site else { return Ok(()) };
    let start = Instant::now();
    run.step("queries: filling the file");
    let samples = fill::fill(folder, run.tasks, &run.progress).await?;
    run.add(Figure::new("queries: filling the file", start.elapsed().as_secs_f64(), "s"));
    run.step("queries: running workflows");
    let (site, workflows) = workflows::run_half(site, run.tasks).await?;
    let samples = Samples { workflows, ..samples };
    let mut server = Server::start(&site, false).await?;
    let held = HeldLeases::claim(&server.url()).await?;
    let mut connection = server.connect().await?;
    for (name, path) in REQUESTS {
        run.step(&format!("queries: {name}, {SAMPLES} times"));
        let millis =
            query(&mut connection, path, &samples).await.with_context(|| path.to_string())?;
        let [p50, p95, max] = percentiles(&format!("queries: {name}"), 95, millis);
        run.figures.extend([p50, p95.must(Target::AtMost(target_millis(path))), max]);
    }
    held.release().await?;
    server.stop().await?;
    site.remove().await
}

fn target_millis(path: &str) -> f64 {
    if path.ends_with("/graph") { GRAPH_TARGET_MILLIS } else { TARGET_MILLIS }
}

/// The fields of a page; a single task has none of them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Page {
    next_cursor: Option<String>,
    scanned: Option<u32>,
    partial: bool,
}

/// Repeats a query, page after page and then from the start; returns the time of each.
async fn query(
    connection: &mut Connection,
    path: &str,
    samples: &Samples,
) -> anyhow::Result<Vec<f64>> {
    let mut cursor = None;
    let mut millis = Vec::with_capacity(SAMPLES);
    for sample in 0..SAMPLES {
        let mut path = samples.fill_in(path, sample);
        if let Some(cursor) = &cursor {
            let mark = if path.contains('?') { '&' } else { '?' };
            path += &format!("{mark}cursor={cursor}");
        }
        let request = get(&path);
        let start = Instant::now();
        let body = connection.send(&request).await?;
        millis.push(start.elapsed().as_secs_f64() * 1000.0);
        let page: Page = serde_json::from_slice(body).context("the answer is not JSON")?;
        let is_bounded = page.scanned.is_none_or(|scanned| scanned <= SCAN_ROWS);
        ensure!(is_bounded || path.contains("/groups"), "a page read {:?} tasks", page.scanned);
        if path == NO_MATCH {
            let says_so = page.partial && page.scanned == Some(SCAN_ROWS);
            ensure!(says_so, "a search without a match must end as partial");
        }
        cursor = page.next_cursor;
    }
    Ok(millis)
}
