//! Programs that are terminated: none of the processes that they started is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::limits::LOG_BYTES;
use duly_core::ports::work_source::{TakenBack, Why};
use duly_worker::{Handler as _, Registry};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fifo::Fifo;
use crate::source::{Rig, id, lease, outcome};
use crate::{code, context, script, shell};

/// Starts a process in the background, which would run for long, and waits for it.
const FAMILY: &str = r#"exec 3>"$0"; sleep 1000 & echo started >&3; wait"#;
/// The same, and all of them ignore SIGTERM.
const STUBBORN: &str = r#"trap '' TERM; exec 3>"$0"; sleep 1000 & echo started >&3; wait"#;
/// Prints a line on SIGTERM.
const POLITE: &str =
    r#"trap 'echo bye >&3; exit' TERM; exec 3>"$0"; sleep 1000 & echo started >&3; wait"#;

fn family(text: &str, fifo: &Fifo, timeout: Option<Duration>) -> Lease {
    Lease { timeout, ..lease(1, "shell", &script(text, fifo.path()).to_string()) }
}

fn rig(grace: Duration) -> Rig {
    Rig::with_grace(1, 0, Registry::new().with("shell", shell()), grace)
}

/// A worker whose program has started.
async fn started(text: &str, fifo: &mut Fifo, grace: Duration) -> Rig {
    let rig = rig(grace);
    rig.source.submit([family(text, fifo, None)]);
    assert_eq!(fifo.line().await, "started");
    rig
}

/// Cancels the task and waits for its end; returns how long that took.
async fn cancel(rig: Rig) -> Duration {
    let started = Instant::now();
    let gone = TakenBack { task: id(1), epoch: 1, why: Why::Cancelled };
    rig.source.change(|seen| seen.taken_back.push(gone));
    assert_eq!(outcome(&rig.source.finished(1).await, 1), Outcome::Release);
    let took = started.elapsed();
    rig.stop().await;
    took
}

async fn timed_out(text: &str) -> (Finish, String) {
    let fifo = Fifo::new();
    let rig = rig(Duration::ZERO);
    rig.source.submit([family(text, &fifo, Some(Duration::from_secs(1)))]);
    let finish = rig.source.finished(1).await.remove(0);
    rig.stop().await;
    (finish, fifo.all_gone().await)
}

#[tokio::test]
async fn when_the_time_is_up_the_whole_group_ends() {
    for (text, end) in [(FAMILY, "ended when asked to"), (STUBBORN, "was killed")] {
        let (finish, said) = timed_out(text).await;
        assert_eq!(said, "started\n");
        let Outcome::Retry { error, .. } = finish.outcome else { panic!("{finish:?}") };
        assert_eq!(error.code, "TIMEOUT");
        assert_eq!(error.message, "the program took longer than 1 s");
        let log = finish.log.unwrap().text;
        assert!(log.contains(end), "{log}");
    }
}

#[tokio::test]
async fn a_program_is_asked_before_it_is_killed() {
    let mut fifo = Fifo::new();
    let rig = started(POLITE, &mut fifo, Duration::ZERO).await;
    cancel(rig).await;
    assert_eq!(fifo.all_gone().await, "bye\n");
}

#[tokio::test]
async fn a_cancelled_task_leaves_nothing_behind() {
    let mut fifo = Fifo::new();
    let rig = started(STUBBORN, &mut fifo, Duration::ZERO).await;
    let took = cancel(rig).await;
    assert!(took >= Duration::from_secs(2), "they had time to end: {took:?}");
    fifo.all_gone().await;
}

#[tokio::test]
async fn a_worker_that_stops_leaves_nothing_behind() {
    let mut fifo = Fifo::new();
    let rig = started(STUBBORN, &mut fifo, Duration::ZERO).await;
    let source = Arc::clone(&rig.source);
    rig.stop().await;
    assert_eq!(outcome(&source.finished(1).await, 1), Outcome::Release);
    fifo.all_gone().await;
}

#[tokio::test]
async fn an_attempt_that_is_dropped_leaves_nothing_behind() {
    let mut fifo = Fifo::new();
    let context = context(&script(STUBBORN, fifo.path()));
    let mut attempts = JoinSet::new();
    attempts.spawn(async move { shell().run(context).await });
    assert_eq!(fifo.line().await, "started");
    attempts.abort_all();
    assert!(attempts.join_next().await.unwrap().unwrap_err().is_cancelled());
    fifo.all_gone().await;
}

#[tokio::test]
async fn endless_output_is_bounded_and_does_not_hide_the_time() {
    let timeout = Some(Duration::from_millis(300));
    let yes = lease(1, "shell", &json!({"argv": ["yes"]}).to_string());
    let context = duly_worker::Context::new(Lease { timeout, ..yes });
    let error = shell().run(context.clone()).await.unwrap_err();
    let message = "the program took longer than 0.3 s";
    assert_eq!(code(&error), ("retry", "TIMEOUT", message));
    let log = context.logged().unwrap();
    assert!(log.len() <= LOG_BYTES && log.contains("y\ny\n"), "{log}");
}
