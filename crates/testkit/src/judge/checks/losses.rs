//! Losses: each has a cause, and they are counted.

use super::Case;
use crate::judge::book::{Final, Why};
use crate::judge::class::Class;
use crate::judge::execution::{Execution, of_epoch, start_after};
use crate::judge::findings::Findings;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(end) = &case.task.end else { return };
    let lost = end.attempts.iter().filter(|(_, why)| *why == Why::Lost).map(|(epoch, _)| *epoch);
    for epoch in lost.clone() {
        check_cause(case, end, epoch, found);
    }
    let before = case.epoch_before_run();
    let count = lost.filter(|epoch| *epoch > before).count();
    if !end.is_cut() && u32::try_from(count) != Ok(end.losses) {
        let detail = format!("{} losses are shown, and {count} lost attempts", end.losses);
        found.add(case.violation(Class::LossesMiscounted, end.at, detail));
    }
}

fn check_cause(case: &Case<'_>, end: &Final, epoch: u32, found: &mut Findings) {
    let next = start_after(case.executions, epoch);
    let execution = of_epoch(case.executions, epoch).filter(|it| it.start.is_some());
    let has_cause = match execution {
        Some(execution) => is_caused(case, execution, next),
        None => is_caused_unseen(case, next),
    };
    if !has_cause {
        let detail = match execution {
            Some(execution) => {
                format!("{} was lost with epoch {epoch}, and nothing happened to it", {
                    case.book.procs.get(execution.proc)
                })
            }
            None => format!("epoch {epoch} was lost when nothing had happened"),
        };
        found.add(case.violation(Class::LostWithoutCause, next.unwrap_or(end.at), detail));
    }
}

/// Something happened to the worker, between it and the server, or to the server; or the process
/// died by itself, as that of a task which kills its worker does.
fn is_caused(case: &Case<'_>, execution: &Execution, next: Option<u64>) -> bool {
    let (start, to) = (execution.start.unwrap_or(0), next.unwrap_or(u64::MAX));
    // A paused worker may start what it has lost after its successor did.
    let from = start.min(to).saturating_sub(2 * case.book.ttl());
    let proc = case.book.procs.get(execution.proc);
    let died = proc.gone.is_some_and(|gone| gone <= to);
    died || case.book.faults.any(from, to, |spell| spell.harms(&proc.worker))
}

/// It is unknown which worker had it, and when: behind a backlog the next start may come long after
/// the loss. Any fault since the task was acknowledged may be the cause, and any death.
fn is_caused_unseen(case: &Case<'_>, next: Option<u64>) -> bool {
    let near = next.map_or(0, |next| next.saturating_sub(3 * case.book.ttl()));
    let from = case.task.acked_at.map_or(near, |acked| acked.min(near));
    let to = next.unwrap_or(u64::MAX);
    case.book.procs.any_gone(from, to) || case.book.faults.any(from, to, |_| true)
}
