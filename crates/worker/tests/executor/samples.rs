//! The sample types: how long they take, what they log and what they return.

use std::time::Duration;

use duly_core::lease::Outcome;
use duly_worker::handlers::{Sample, with_samples};
use duly_worker::{Context, Handler as _, Registry};
use serde_json::Value;
use tokio::time::Instant;

use crate::source::{Rig, lease, outcome};

const SAMPLES: [(&str, u64); 3] =
    [("daily-report", 5), ("cleanup-temp-files", 1), ("data-backup", 10)];

/// Runs one task; returns its outcome and how long it took.
async fn run(number: u32, task_type: &str, payload: &str) -> (Outcome, Duration) {
    let rig = Rig::start(1, 0, with_samples(Registry::new()));
    let started = Instant::now();
    rig.source.submit([lease(number, task_type, payload)]);
    let outcome = outcome(&rig.source.finished(1).await, number);
    let took = started.elapsed();
    rig.stop().await;
    (outcome, took)
}

async fn result(number: u32, task_type: &str, payload: &str) -> Value {
    match run(number, task_type, payload).await.0 {
        Outcome::Success { result } => serde_json::from_str(&result.unwrap()).unwrap(),
        other => panic!("{task_type}: {other:?}"),
    }
}

/// Tokio's paused clock rounds each step up to whole milliseconds.
fn is_about(took: Duration, seconds: f64) -> bool {
    (took.as_secs_f64() - seconds).abs() < 0.02
}

#[tokio::test(start_paused = true)]
async fn samples_take_their_time() {
    for (task_type, seconds) in SAMPLES {
        let seconds = Duration::from_secs(seconds).as_secs_f64();
        for (payload, speed) in [("null", 1.0), ("{}", 1.0), (r#"{"speed":10}"#, 10.0)] {
            let (outcome, took) = run(1, task_type, payload).await;
            assert!(matches!(outcome, Outcome::Success { .. }), "{task_type}: {outcome:?}");
            assert!(is_about(took, seconds / speed), "{task_type} {payload}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn results_follow_from_the_task() {
    for (task_type, _) in SAMPLES {
        let first = result(1, task_type, "null").await;
        assert_eq!(first, result(1, task_type, r#"{"speed":3}"#).await);
        assert_ne!(first, result(2, task_type, "null").await);
        assert_eq!(first["sample"], true, "{first}");
        assert!(first["steps"].as_u64().unwrap() >= 3, "{first}");
    }
    assert_eq!(result(1, "daily-report", "null").await["report"], "daily");
}

#[tokio::test(start_paused = true)]
async fn samples_log_their_steps() {
    let context = Context::new(lease(1, "cleanup-temp-files", "null"));
    Sample::CLEANUP_TEMP_FILES.run(context.clone()).await.unwrap();
    let log = context.logged().unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    assert_eq!(lines[0], "step 1 of 3: list the files");
    assert!(lines[3].contains("nothing has changed"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_speed_must_make_sense() {
    for payload in [r#"{"speed":0}"#, r#"{"speed":-1}"#, r#"{"speed":1e7}"#, r#"{"fast":1}"#, "7"] {
        let (outcome, _) = run(1, "daily-report", payload).await;
        let Outcome::Fail { error } = outcome else { panic!("{payload}: {outcome:?}") };
        assert_eq!(error.code, "INVALID_PAYLOAD", "{payload}");
    }
}
