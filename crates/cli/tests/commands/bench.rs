//! `duly bench` with the real program, on a small scale: it measures what it says. Speed is not
//! judged here: the machine is busy with other tests.

use std::path::Path;

use duly_store::postgres::scratch;
use duly_testkit::command;
use serde_json::Value;

use crate::DULY;

/// The report of a run on files in this folder, from its output.
async fn run(folder: &Path, words: &[&str]) -> anyhow::Result<Value> {
    run_on(&format!("sqlite:{}", folder.display()), &[words, &["--tasks=1000"]].concat()).await
}

async fn run_on(store: &str, words: &[&str]) -> anyhow::Result<Value> {
    let line = [&["bench", "--store", store, "-o", "json"], words].concat();
    let ended = command::run_long(Path::new(DULY), &line).await?;
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    ended.json()
}

fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut figures = report["figures"].as_array().into_iter().flatten();
    figures.find(|figure| figure["name"] == name).unwrap_or(&Value::Null)
}

/// Part of a figure; NaN if it is not a number.
fn number(figure: &Value, part: &str) -> f64 {
    figure[part].as_f64().unwrap_or(f64::NAN)
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_to_a_file_are_measured() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let report = run(folder.path(), &["--only", "queries"]).await?;
    for (kind, target) in [
        ("one task", 50.0),
        ("list status:RUNNING", 50.0),
        ("list, no match", 50.0),
        ("dead letters", 50.0),
        ("dead groups", 50.0),
        ("one workflow", 50.0),
        ("graph of a workflow", 300.0),
    ] {
        let [p50, p95, max] =
            ["p50", "p95", "max"].map(|it| figure(&report, &format!("queries: {kind} {it}")));
        assert_eq!(p95["must"]["atMost"], target, "{kind}: {report}");
        let millis = [p50, p95, max].map(|figure| figure["value"].as_f64().unwrap_or(-1.0));
        assert!(0.0 < millis[0] && millis.is_sorted(), "{kind}: {millis:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "nothing is left behind");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_stands_beside_its_limit_and_is_kept() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let saved = folder.path().join("results/run.json");
    let words = [
        "--only=growth,engine,rest,remote,auth",
        "--backlog=1000,2000",
        "--label=commit=4f2a91c",
        &format!("--save={}", saved.display()),
    ];
    let report = run(folder.path(), &words).await?;
    let kept: Value = serde_json::from_slice(&std::fs::read(&saved)?)?;
    assert_eq!(kept, report, "the file has what was printed");
    assert_eq!(report["labels"]["commit"], "4f2a91c");
    assert!(report["machine"]["cpus"].as_u64() > Some(0), "{report}");
    for name in [
        "engine: batch submit",
        "engine: drain",
        "engine: whole cycle",
        "engine: hand-off cycle",
        "engine: whole cycle, log",
        "REST: batch submit",
        "remote worker: drain over HTTP",
        "with keys: single submit",
        "with keys: drain over HTTP",
        "growth: whole cycle, 2000 wait",
        "growth: memory, 2000 wait",
        "growth: whole cycle, 10000 lanes",
    ] {
        let [value, limit, ratio] =
            ["value", "limit", "ratio"].map(|part| number(figure(&report, name), part));
        // Numbers are read back to the last digit but one.
        assert!((ratio * limit / value - 1.0).abs() < 1e-9, "{name}: {report}");
    }
    // Exact on every machine: what is handed off is written once less.
    let bytes = |name: &str| figure(&report, name)["value"].as_f64().unwrap_or_default();
    let (waiting, handed) = (bytes("limit, due table: log"), bytes("limit, hand-off: log"));
    assert!(0.0 < handed && handed < waiting, "{handed} and {waiting}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_measured_too() -> anyhow::Result<()> {
    let Some(server) = scratch::server() else { return Ok(()) };
    let growth = ["--only=growth", "--backlog=2000", "--tasks=1000"];
    let report = run_on(&server, &growth).await?;
    assert!(report["store"].as_str().is_some_and(|it| it.starts_with("PostgreSQL ")), "{report}");
    let command = report["command"].as_str().unwrap_or_default();
    assert!(!command.contains('@'), "no user and no password: {command}");
    let ratio = number(figure(&report, "growth: whole cycle, 2000 wait"), "ratio");
    assert!(ratio > 0.0, "{report}");
    Ok(())
}

#[tokio::test]
async fn a_part_that_a_store_has_not_is_refused() -> anyhow::Result<()> {
    let held = ["bench", "--store", "sqlite:.", "--only", "held"];
    let queries =
        ["bench", "--store", "postgres://unknown:secret@127.0.0.1:1/none", "--only", "queries"];
    for (words, reason) in [(held, "postgres://"), (queries, "sqlite:DIR")] {
        let ended = command::run(Path::new(DULY), &words).await?;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(reason) && !ended.stderr.contains("secret"), "{ended:?}");
    }
    Ok(())
}
