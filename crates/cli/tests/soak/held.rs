//! What a large backlog and a transaction that is held open cost on PostgreSQL.

use std::path::Path;

use duly_store::postgres::scratch;
use duly_testkit::command;
use serde_json::Value;

use super::{DULY, TURN};

/// The least share of the usual speed.
const SHARE: f64 = 0.4;

/// Runs `duly bench` on this store, and returns its report.
async fn bench(store: &str, words: &[&str]) -> anyhow::Result<Value> {
    let line = [&["bench", "--store", store, "-o", "json"], words].concat();
    let ended = command::run_long(Path::new(DULY), &line).await?;
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    ended.json()
}

/// A figure as a share of its limit; a missing one compares with nothing.
fn ratio(report: &Value, name: &str) -> f64 {
    let mut figures = report["figures"].as_array().into_iter().flatten();
    let figure = figures.find(|figure| figure["name"] == name).unwrap_or(&Value::Null);
    figure["ratio"].as_f64().unwrap_or(f64::NAN)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_200_000_tasks_costs_little() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let Some(server) = scratch::server() else { return Ok(()) };
    let growth = ["--only=growth", "--backlog=200000", "--tasks=5000"];
    let report = bench(&server, &growth).await?;
    let ratio = ratio(&report, "growth: whole cycle, 200000 wait");
    assert!(ratio > SHARE, "a backlog costs too much: {ratio}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_held_open_costs_little() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let Some(server) = scratch::server() else { return Ok(()) };
    let report = bench(&server, &["--only=held", "--hold=15s"]).await?;
    for holder in ["reader", "writer"] {
        let ratio = ratio(&report, &format!("held by a {holder}: 10/10"));
        assert!(ratio > SHARE, "a {holder} costs too much: {ratio}");
    }
    Ok(())
}
