//! Reports progress and log lines of attempts: tried once, since the outcome carries what was not
//! reported.

use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::ReportFailed;

use super::connection::{Connection, session_is_gone};
use crate::error::Error;
use crate::wire::{LogItem, LogsRequest, ProgressItem, ProgressRequest, ReportAnswer};

impl Connection {
    /// One answer per item, in order.
    pub(super) async fn report(&self, batch: &[ReportItem]) -> Result<Vec<Reported>, ReportFailed> {
        let mut answers = vec![Reported::Done; batch.len()];
        let leases = batch.iter().map(|item| (item.task, item.epoch));
        for (session_id, positions) in self.by_session(leases) {
            let (mut progress, mut of_progress) = (Vec::new(), Vec::new());
            let (mut logs, mut of_logs) = (Vec::new(), Vec::new());
            for position in positions {
                let progressed = ProgressItem::of(&batch[position]);
                of_progress.extend(progressed.as_ref().map(|_| position));
                progress.extend(progressed);
                let logged = LogItem::of(&batch[position]);
                of_logs.extend(logged.as_ref().map(|_| position));
                logs.extend(logged);
            }
            if !progress.is_empty() {
                let request = ProgressRequest { session_id, items: progress };
                note(&mut answers, &of_progress, self.client.report_progress(&request).await)?;
            }
            if !logs.is_empty() {
                let request = LogsRequest { session_id, items: logs };
                note(&mut answers, &of_logs, self.client.report_logs(&request).await)?;
            }
        }
        Ok(answers)
    }
}

/// Merges the answers to these items; an answer that a lease is gone is final.
fn note(
    answers: &mut [Reported],
    positions: &[usize],
    answer: Result<ReportAnswer, Error>,
) -> Result<(), ReportFailed> {
    match answer {
        Ok(answer) if answer.items.len() == positions.len() => {
            for (position, item) in positions.iter().zip(answer.items) {
                if answers[*position] == Reported::Done {
                    answers[*position] = item.status.into();
                }
            }
            Ok(())
        }
        Err(error) if session_is_gone(&error) => {
            positions.iter().for_each(|position| answers[*position] = Reported::LeaseLost);
            Ok(())
        }
        Ok(_) => Err(ReportFailed),
        Err(error) => {
            tracing::debug!(%error, "the server did not take a report");
            Err(ReportFailed)
        }
    }
}
