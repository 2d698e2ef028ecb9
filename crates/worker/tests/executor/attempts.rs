//! Which outcome follows from an attempt's end.

use std::time::Duration;

use async_trait::async_trait;
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::limits::{JSON_DEPTH, LOG_BYTES, RESULT_BYTES};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_worker::{Context, Guard, Handler, HandlerError, Output, Registry, handlers};

use crate::source::{Rig, id, lease, outcome, rest, sleep};

/// Does what its payload names.
struct Scripted;

#[async_trait]
impl Handler for Scripted {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        match context.payload::<String>()?.as_str() {
            "panic" => panic!("no {}", "way"),
            "panic late" => {
                tokio::task::yield_now().await;
                panic!("too late")
            }
            "panic in drop" => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            "log and panic" => {
                context.log("so far so good");
                panic!("no more")
            }
            "log and hang" => {
                context.log(format_args!("attempt {}", context.attempt()));
                std::future::pending().await
            }
            "log and fail" => {
                context.log("x".repeat(LOG_BYTES));
                Err(HandlerError::fail("GONE", "for good"))
            }
            "log and succeed" => {
                context.log("it was easy");
                Ok(Output::none())
            }
            "retry" => Err(HandlerError::retry("BUSY", "come \0 back")),
            "fail" => Err(HandlerError::fail("GONE", "for good")),
            "none" => Ok(Output::none()),
            "later" => Err(HandlerError::retry_after(Duration::from_secs(9), "BUSY", "later")),
            "release" => Err(HandlerError::Release),
            "wind up" => {
                context.cancelled().await;
                Output::json(&context.is_cancelled())
            }
            "largest" => Output::json(&"x".repeat(RESULT_BYTES - 2)),
            "large" => Output::json(&"x".repeat(RESULT_BYTES - 1)),
            "deep" => {
                Output::text("[".repeat(JSON_DEPTH + 1).to_string() + &"]".repeat(JSON_DEPTH + 1))
            }
            "nul" => Output::json(&"\0"),
            "not json" => Output::text("{"),
            other => Err(HandlerError::invalid_payload(other)),
        }
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

async fn run(leases: Vec<Lease>) -> Vec<Finish> {
    let registry = Registry::new().with("scripted", Scripted).with("sleep", handlers::Sleep);
    let rig = Rig::start(4, 4, registry);
    let count = leases.len();
    rig.source.submit(leases);
    let finishes = rig.source.finished(count).await;
    rig.stop().await;
    finishes
}

fn scripted(script: &str) -> Lease {
    let timeout = Some(Duration::from_secs(2));
    Lease { timeout, ..lease(1, "scripted", &format!("{script:?}")) }
}

async fn run_scripted(script: &str) -> Outcome {
    outcome(&run(vec![scripted(script)]).await, 1)
}

fn code(outcome: &Outcome) -> (&'static str, &str, &str) {
    match outcome {
        Outcome::Retry { error, .. } => ("retry", &error.code, &error.message),
        Outcome::Fail { error } => ("fail", &error.code, &error.message),
        other => panic!("no failure: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handlers_decision_is_kept() {
    let retry = run_scripted("retry").await;
    assert_eq!(code(&retry), ("retry", "BUSY", "come \u{fffd} back"));
    assert_eq!(code(&run_scripted("fail").await), ("fail", "GONE", "for good"));
    let strange = run_scripted("strange").await;
    assert_eq!(code(&strange), ("fail", "INVALID_PAYLOAD", "strange"));
    assert_eq!(run_scripted("none").await, Outcome::Success { result: None });
    assert_eq!(run_scripted("release").await, Outcome::Release);
    let Outcome::Retry { after, .. } = run_scripted("later").await else { panic!("no retry") };
    assert_eq!(after, Some(Duration::from_secs(9)));
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_lease_is_gone_is_told_and_then_stopped() {
    let registry = Registry::new().with("scripted", Scripted).with("sleep", handlers::Sleep);
    let rig = Rig::start(4, 4, registry);
    rig.source.submit(vec![lease(1, "scripted", r#""wind up""#), sleep(2, 3600), sleep(3, 60)]);
    rest().await;
    let started = tokio::time::Instant::now();
    let gone = [(1, Why::Lost), (2, Why::Cancelled)];
    let gone = gone.map(|(number, why)| TakenBack { task: id(number), epoch: 1, why });
    rig.source.change(|seen| seen.taken_back.extend(gone));
    let finishes = rig.source.finished(2).await;
    assert_eq!(started.elapsed(), Duration::from_secs(5), "one heard it, one was stopped");
    assert_eq!(outcome(&finishes, 1), Outcome::Success { result: Some("true".into()) });
    assert_eq!(outcome(&finishes, 2), Outcome::Release);
    let finishes = rig.source.finished(3).await;
    let rest = Duration::from_secs(60) - started.elapsed();
    assert!(rest <= Duration::from_millis(1), "others are not disturbed: {rest:?}");
    assert!(matches!(outcome(&finishes, 3), Outcome::Success { .. }));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_logged_goes_with_the_outcome() {
    let full = "x".repeat(LOG_BYTES - 1) + "\n";
    for (script, log) in [
        ("log and panic", Some("so far so good\n")),
        ("log and hang", Some("attempt 1\n")),
        ("log and fail", Some(full.as_str())),
        ("log and succeed", Some("it was easy\n")),
        ("retry", None),
    ] {
        let finishes = run(vec![scripted(script)]).await;
        assert_eq!(finishes[0].log.as_ref().map(|log| &*log.text), log, "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_retry_with_its_message() {
    assert_eq!(code(&run_scripted("panic").await), ("retry", "PANIC", "no way"));
    assert_eq!(code(&run_scripted("panic late").await), ("retry", "PANIC", "too late"));
    assert_eq!(code(&run_scripted("panic in drop").await), ("retry", "PANIC", "dropped"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_over_its_time_is_a_retry() {
    let mut slow = sleep(1, 10);
    slow.timeout = Some(Duration::from_millis(1_500));
    let started = tokio::time::Instant::now();
    let finishes = run(vec![slow]).await;
    assert_eq!(started.elapsed(), Duration::from_millis(1_500));
    let outcome = outcome(&finishes, 1);
    assert_eq!(code(&outcome), ("retry", "TIMEOUT", "the handler took longer than 1.5 s"));
}

#[tokio::test(start_paused = true)]
async fn a_type_without_a_handler_is_a_retry() {
    let finishes = run(vec![lease(1, "other", "1")]).await;
    let (decision, code, _) = code(&finishes[0].outcome);
    assert_eq!((decision, code), ("retry", "NO_HANDLER"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_is_a_failure() {
    let Outcome::Success { result } = run_scripted("largest").await else { panic!("it fits") };
    assert_eq!(result.unwrap().len(), RESULT_BYTES);
    for (script, expected) in [
        ("large", "RESULT_TOO_LARGE"),
        ("deep", "INVALID_RESULT"),
        ("nul", "INVALID_RESULT"),
        ("not json", "INVALID_RESULT"),
    ] {
        let outcome = run_scripted(script).await;
        let (decision, code, _) = code(&outcome);
        assert_eq!((decision, code), ("fail", expected), "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_retry_draws_its_own_entropy() {
    let finishes = run((1..=3).map(|n| lease(n, "scripted", "\"retry\"")).collect()).await;
    let mut drawn: Vec<u64> = finishes
        .iter()
        .map(|finish| match finish.outcome {
            Outcome::Retry { entropy, .. } => entropy,
            ref other => panic!("no retry: {other:?}"),
        })
        .collect();
    drawn.sort_unstable();
    assert_eq!(drawn, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_built_in_handlers_do_what_they_say() {
    let rig = Rig::start(8, 0, handlers::builtin(Guard::new(vec![])));
    let mut flaky = lease(1, "flaky", r#"{"failTimes":2}"#);
    flaky.attempt = 2;
    let mut recovered = lease(2, "flaky", r#"{"failTimes":2}"#);
    recovered.attempt = 3;
    rig.source.submit([
        flaky,
        recovered,
        lease(3, "echo", r#"{ "n": 123456789012345678901234567890 }"#),
        lease(4, "sleep", r#"{"seconds":1.5}"#),
        lease(5, "sleep", r#"{"seconds":-1}"#),
        lease(6, "sleep", r#"{"seconds":86401}"#),
        lease(7, "sleep", r#"{"seconds":1,"millis":1}"#),
    ]);
    let finishes = rig.source.finished(7).await;
    let text = |number| match outcome(&finishes, number) {
        Outcome::Success { result } => result.unwrap().to_string(),
        other => format!("{} {}", code(&other).0, code(&other).1),
    };
    assert_eq!(text(1), "retry FLAKY");
    let flaky = finishes.iter().find(|finish| finish.task == id(1)).unwrap();
    assert_eq!(flaky.log.as_ref().map(|log| &*log.text), Some("attempt 2; the first 2 fail\n"));
    assert_eq!(text(2), r#"{"attempts":3}"#);
    assert_eq!(text(3), r#"{ "n": 123456789012345678901234567890 }"#);
    assert_eq!(text(4), r#"{"sleptSeconds":1.5}"#);
    for number in 5..=7 {
        assert_eq!(text(number), "fail INVALID_PAYLOAD", "{:?}", id(number));
    }
    rig.stop().await;
}
