//! Attempts: each outcome that was accepted is charged, each lease that ran over its time, and
//! nothing else.

use std::collections::BTreeSet;

use duly_core::state::Status;

use super::Case;
use crate::judge::book::{Final, Why};
use crate::judge::class::Class;
use crate::judge::findings::Findings;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(end) = &case.task.end else { return };
    let ended_by_itself = matches!(end.status, Status::Success | Status::Failed);
    if !ended_by_itself || end.is_cut() {
        return;
    }
    let before = case.epoch_before_run();
    let (certain, open) = charged(case, end, before);
    let shown = usize::try_from(end.attempt).unwrap_or(usize::MAX);
    if shown < certain || shown > certain + open {
        let detail =
            format!("{shown} attempts are shown, and {certain} to {} charged", { certain + open });
        found.add(case.violation(Class::AttemptsMiscounted, end.at, detail));
    }
}

/// How many epochs were charged for certain, and how many others may have been.
///
/// A refusal proves little: an outcome that was accepted is refused when it is sent again because
/// its answer was lost and the task has gone on meanwhile. Its error is then kept all the same.
fn charged(case: &Case<'_>, end: &Final, before: u32) -> (usize, usize) {
    let mut certain: BTreeSet<u32> = BTreeSet::new();
    let failed = end.attempts.iter().filter(|(_, why)| *why != Why::Lost);
    certain.extend(failed.map(|(epoch, _)| *epoch));
    certain.extend((end.status == Status::Success).then_some(end.epoch));
    let accepted = case.executions.iter().filter(|execution| execution.committed.is_some());
    certain.extend(accepted.map(|execution| execution.epoch));
    let open = case.executions.iter().filter(|execution| {
        let sent = execution.end.is_some() && !execution.is_refused;
        let is_told = certain.contains(&execution.epoch) || end.why(execution.epoch).is_some();
        execution.epoch > before && sent && !is_told
    });
    let open = open.count();
    certain.retain(|epoch| *epoch > before);
    (certain.len(), open)
}
