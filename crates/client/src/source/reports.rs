//! Telling how far attempts are and what they log: tried once, since what is not heard goes with
//! the outcome.

use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::Unheard;

use super::link::{Link, session_is_gone};
use crate::error::Error;
use crate::wire::{LogItem, LogsRequest, ProgressItem, ProgressRequest, ReportAnswer};

impl Link {
    /// One answer per item, in order.
    pub(super) async fn report(&self, batch: &[ReportItem]) -> Result<Vec<Reported>, Unheard> {
        let mut answers = vec![Reported::Done; batch.len()];
        let leases = batch.iter().map(|item| (item.task, item.epoch));
        for (session_id, places) in self.by_session(leases) {
            let (mut progress, mut of_progress) = (Vec::new(), Vec::new());
            let (mut logs, mut of_logs) = (Vec::new(), Vec::new());
            for place in places {
                let told = ProgressItem::of(&batch[place]);
                of_progress.extend(told.as_ref().map(|_| place));
                progress.extend(told);
                let logged = LogItem::of(&batch[place]);
                of_logs.extend(logged.as_ref().map(|_| place));
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

/// What became of these items; one that is gone stays so, whatever else is said of it.
fn note(
    answers: &mut [Reported],
    places: &[usize],
    answer: Result<ReportAnswer, Error>,
) -> Result<(), Unheard> {
    match answer {
        Ok(answer) if answer.items.len() == places.len() => {
            for (place, item) in places.iter().zip(answer.items) {
                if answers[*place] == Reported::Done {
                    answers[*place] = item.status.into();
                }
            }
            Ok(())
        }
        Err(error) if session_is_gone(&error) => {
            places.iter().for_each(|place| answers[*place] = Reported::LeaseLost);
            Ok(())
        }
        Ok(_) => Err(Unheard),
        Err(error) => {
            tracing::debug!(%error, "a report was not taken");
            Err(Unheard)
        }
    }
}
