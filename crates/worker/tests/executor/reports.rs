//! What running attempts report, and how often.

use std::time::Duration;

use async_trait::async_trait;
use duly_core::lease::Finish;
use duly_core::log::LogChunk;
use duly_core::ports::store::Reported;
use duly_core::progress::Progress;
use duly_worker::{Context, Handler, HandlerError, Output, Registry, handlers};
use serde::Deserialize;
use tokio::time::Instant;

use crate::source::{Rig, Seen, id, lease, rest};

/// Reports something every so many milliseconds.
struct Talker;

#[derive(Deserialize)]
struct Payload {
    every: u64,
    times: u64,
    /// Whether it runs for ever after its last report.
    #[serde(default)]
    hangs: bool,
}

#[async_trait]
impl Handler for Talker {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let Payload { every, times, hangs } = context.payload()?;
        for step in 1..=times {
            context.progress(step, Some(times), None);
            context.log(format_args!("line {step}"));
            let pause = tokio::time::timeout(Duration::from_millis(every), context.cancelled());
            if pause.await.is_ok() {
                return Err(HandlerError::Release);
            }
        }
        if hangs {
            context.cancelled().await;
        }
        Ok(Output::none())
    }
}

fn rig() -> Rig {
    let registry = Registry::new().with("talker", Talker).with("sleep", handlers::Sleep);
    let rig = Rig::start(8, 8, registry);
    rig.source.change(|seen| seen.reported = Some(Reported::Done));
    rig
}

fn talker(number: u32, payload: &str) -> duly_core::lease::Lease {
    lease(number, "talker", payload)
}

/// The log of a task as a server assembles it, without repeated pieces.
fn log_of(seen: &Seen, number: u32) -> String {
    let reported = seen.reports.iter().flat_map(|(_, batch)| batch);
    let reported =
        reported.filter(|item| item.task == id(number)).filter_map(|item| item.log.as_ref());
    let last = seen.finishes().filter(|finish| finish.task == id(number));
    let last = last.filter_map(|finish| finish.log.as_ref());
    let mut whole = String::new();
    for chunk in reported.chain(last) {
        if let Some((offset, text)) = chunk.beyond(whole.len() as u64) {
            assert_eq!(offset, whole.len() as u64, "nothing is left out");
            whole.push_str(text);
        }
    }
    whole
}

fn lines(count: u64) -> String {
    (1..=count).map(|step| format!("line {step}\n")).collect()
}

fn only(finishes: &[Finish]) -> &Finish {
    assert_eq!(finishes.len(), 1);
    &finishes[0]
}

#[tokio::test(start_paused = true)]
async fn many_words_in_a_second_are_one_report() {
    let rig = rig();
    let start = Instant::now();
    rig.source.submit([
        talker(1, r#"{"every":10,"times":350}"#),
        talker(2, r#"{"every":10,"times":350}"#),
    ]);
    rig.source.finished(2).await;
    let seen = rig.source.seen();
    let at: Vec<_> = seen.reports.iter().map(|(at, _)| *at - start).collect();
    let expected = [200, 1200, 2200, 3200].map(Duration::from_millis);
    assert_eq!(at.len(), expected.len(), "{at:?}");
    for (at, expected) in at.iter().zip(expected) {
        assert!(*at >= expected && *at < expected + Duration::from_millis(20), "{at:?}");
    }
    for (number, (_, batch)) in seen.reports.iter().enumerate() {
        assert_eq!(batch.len(), 2, "report {number} is about both");
    }
    let last = seen.reports[3].1[0].progress.clone().unwrap();
    assert!((310..=330).contains(&last.done), "the last word of each second: {last:?}");
    for finish in seen.finishes() {
        assert_eq!(finish.progress, Some(Progress::new(350, Some(350))), "the rest goes with it");
    }
    assert_eq!(log_of(&seen, 1), lines(350));
    assert_eq!(log_of(&seen, 2), lines(350));
    // An acknowledged report is not sent again.
    let sent: usize =
        seen.reports.iter().map(|(_, it)| it[0].log.as_ref().unwrap().text.len()).sum();
    let last = seen.finishes().find(|finish| finish.task == seen.reports[0].1[0].task).unwrap();
    assert_eq!(sent + last.log.as_ref().unwrap().text.len(), lines(350).len());
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_attempt_tells_everything_with_its_outcome() {
    let rig = rig();
    rig.source.submit([talker(1, r#"{"every":10,"times":3}"#)]);
    let finishes = rig.source.finished(1).await;
    let finish = only(&finishes);
    assert_eq!(finish.log, Some(LogChunk { offset: 0, text: lines(3).into() }));
    assert_eq!(finish.progress, Some(Progress::new(3, Some(3))));
    tokio::time::timeout(Duration::from_secs(5), std::future::pending::<()>()).await.unwrap_err();
    assert!(rig.source.seen().reports.is_empty(), "no attempt is left that could report");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_tells_nothing_causes_nothing() {
    let rig = rig();
    rig.source.submit([crate::source::sleep(1, 3600)]);
    let finishes = rig.source.finished(1).await;
    assert_eq!((&only(&finishes).progress, &only(&finishes).log), (&None, &None));
    assert!(rig.source.seen().reports.is_empty());
    // After the last report there is none until the handler adds something.
    rig.source.submit([talker(2, r#"{"every":1,"times":2,"hangs":true}"#)]);
    rig.source.until(|seen| seen.reports.len() == 1).await;
    tokio::time::timeout(Duration::from_secs(60), std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(rig.source.seen().reports.len(), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_heard_is_told_again() {
    let rig = rig();
    rig.source.change(|seen| seen.reported = None);
    rig.source.submit([talker(1, r#"{"every":900,"times":4}"#)]);
    rig.source.until(|seen| seen.reports.len() == 3).await;
    rig.source.change(|seen| seen.reported = Some(Reported::Done));
    rig.source.finished(1).await;
    let seen = rig.source.seen();
    let offsets: Vec<_> =
        seen.reports.iter().filter_map(|(_, it)| it[0].log.as_ref()).map(|it| it.offset).collect();
    assert_eq!(offsets[..4], [0; 4], "until it was heard");
    assert_eq!(log_of(&seen, 1), lines(4));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_outcome_does_not_wait_for_a_report() {
    let rig = rig();
    rig.source.change(|seen| seen.reports_hang = true);
    let start = Instant::now();
    rig.source.submit([talker(1, r#"{"every":500,"times":4}"#)]);
    let finishes = rig.source.finished(1).await;
    assert!(start.elapsed() < Duration::from_millis(2010), "{:?}", start.elapsed());
    assert_eq!(only(&finishes).log, Some(LogChunk { offset: 0, text: lines(4).into() }));
    let seen = rig.source.seen();
    assert_eq!(seen.reports.len(), 1, "one at a time");
    assert_eq!(log_of(&seen, 1), lines(4));
    rig.source.change(|seen| seen.reports_hang = false);
    rest().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_turns_out_to_be_gone_is_given_up() {
    let rig = rig();
    rig.source.change(|seen| seen.reported = Some(Reported::LeaseLost));
    let start = Instant::now();
    rig.source.submit([talker(1, r#"{"every":100,"times":1000}"#)]);
    let finishes = rig.source.finished(1).await;
    assert_eq!(only(&finishes).outcome, duly_core::lease::Outcome::Release);
    assert!(start.elapsed() < Duration::from_millis(350), "{:?}", start.elapsed());
    rig.stop().await;
}
