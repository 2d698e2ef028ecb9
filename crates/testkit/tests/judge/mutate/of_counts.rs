//! Changes of what is counted.

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::judge::Class;
use rand::Rng as _;
use rand::rngs::StdRng;

use super::{pick, time_of};
use crate::history::History;

pub(super) fn change_attempt(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| {
        line.event.status != Status::Cancelled && is_told(history, line.event.task)
    })?;
    let attempt = &mut history.shown[place].event.attempt;
    *attempt = if *attempt > 0 && random.random() { *attempt - 1 } else { *attempt + 1 };
    Some(Class::AttemptsMiscounted)
}

/// Whether every execution that ended knows what became of its outcome.
fn is_told(history: &History, task: TaskId) -> bool {
    let ends = history.effects.iter().map(|line| &line.event);
    let mut ends = ends.filter(|it| it.task == task && it.ev == Ev::End);
    ends.all(|&Effect { epoch, .. }| {
        let told = [Ev::CommitOk, Ev::CommitRefused].into_iter();
        told.filter_map(|ev| time_of(history, task, epoch, ev)).next().is_some()
    })
}

pub(super) fn change_losses(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |_| true)?;
    let losses = &mut history.shown[place].event.losses;
    *losses = if *losses > 0 && random.random() { *losses - 1 } else { *losses + 1 };
    Some(Class::LossesMiscounted)
}
