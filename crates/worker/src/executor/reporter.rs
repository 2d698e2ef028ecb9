//! Sends the progress and log lines of running attempts: all in one call, at most one call a
//! second, and none while there is nothing to report. Outcomes do not wait for reports.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use duly_core::limits::{REPORT_INTERVAL, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::Reported;
use duly_core::ports::work_source::{ReportFailed, TakenBack, Why, WorkSource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep};

use crate::notes::{PendingReport, ReportQueue};

/// How long a report waits at least. An attempt that ends within this time sends it with its
/// outcome.
const MIN_DELAY: Duration = Duration::from_millis(200);

/// Reports on their way to the source.
pub(super) struct Reporter {
    source: Arc<dyn WorkSource>,
    queue: Arc<ReportQueue>,
    /// Fires when the next call is due. `None` while there is nothing to report.
    timer: Option<Pin<Box<Sleep>>>,
    last: Option<Instant>,
    call: Option<Call>,
}

/// A `report` without an answer so far.
struct Call {
    reports: Vec<PendingReport>,
    answer: BoxFuture<'static, Result<Vec<Reported>, ReportFailed>>,
}

impl Reporter {
    pub(super) fn new(source: Arc<dyn WorkSource>, queue: Arc<ReportQueue>) -> Self {
        Self { source, queue, timer: None, last: None, call: None }
    }

    /// Sends reports until an answer shows that leases are gone; returns those. Dropping the future
    /// loses nothing.
    pub(super) async fn reported(&mut self) -> Vec<TakenBack> {
        loop {
            if let Some(call) = &mut self.call {
                let answer = (&mut call.answer).await;
                let reports = self.call.take().map(|call| call.reports).unwrap_or_default();
                let gone = settle(&reports, answer);
                if gone.is_empty() {
                    continue;
                }
                return gone;
            }
            if self.timer.is_none() {
                self.queue.not_empty().await;
                let soon = Instant::now() + MIN_DELAY;
                let due = self.last.map_or(soon, |last| soon.max(last + REPORT_INTERVAL));
                self.timer = Some(Box::pin(tokio::time::sleep_until(due)));
            }
            if let Some(timer) = &mut self.timer {
                timer.as_mut().await;
            }
            self.timer = None;
            self.call = self.next_call();
        }
    }

    /// The next call; `None` if all attempts in the queue have ended. Reports that do not fit wait
    /// for the call after it.
    fn next_call(&mut self) -> Option<Call> {
        let (mut reports, mut bytes) = (Vec::new(), 0);
        for notes in self.queue.take() {
            if reports.len() == STORE_BATCH || bytes > STORE_BATCH_BYTES {
                notes.defer();
                continue;
            }
            let Some(next) = notes.pending_report() else { continue };
            bytes += bytes_of(&next);
            reports.push(next);
        }
        if reports.is_empty() {
            return None;
        }
        self.last = Some(Instant::now());
        let batch = reports.iter().map(|report| report.item.clone()).collect();
        let source = Arc::clone(&self.source);
        Some(Call { reports, answer: async move { source.report(batch).await }.boxed() })
    }
}

/// Applies the answers. Returns the leases that are gone.
fn settle(
    reports: &[PendingReport],
    answer: Result<Vec<Reported>, ReportFailed>,
) -> Vec<TakenBack> {
    let answers = answer.unwrap_or_default();
    let mut gone = Vec::new();
    for (position, report) in reports.iter().enumerate() {
        match answers.get(position) {
            Some(Reported::Done) => report.acknowledge(),
            // If the attempt has ended meanwhile, its own outcome ended the lease.
            Some(Reported::LeaseLost) if report.is_open() => {
                let (task, epoch) = (report.item.task, report.item.epoch);
                gone.push(TakenBack { task, epoch, why: Why::Lost });
            }
            Some(Reported::LeaseLost | Reported::Unknown) => {}
            None => report.notes.requeue(),
        }
    }
    gone
}

fn bytes_of(report: &PendingReport) -> usize {
    let checkpoint = report.item.progress.as_ref().and_then(|it| it.checkpoint.as_ref());
    let log = report.item.log.as_ref().map(|log| &log.text);
    [checkpoint, log].into_iter().flatten().map(|text| text.len()).sum()
}
