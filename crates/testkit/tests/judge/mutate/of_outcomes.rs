//! Changes of what was committed.

use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev, Kind};
use duly_testkit::judge::Class;
use rand::Rng as _;
use rand::rngs::StdRng;

use super::{pick, successor, time_of};
use crate::history::History;

/// Whether it ended its run.
fn ends(effect: &Effect) -> bool {
    effect.ev == Ev::CommitOk && effect.outcome != Some(Kind::Retry)
}

pub(super) fn change_epoch(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| ends(&line.event))?;
    history.effects[place].event.epoch += random.random_range(1..4);
    Some(Class::DoubleOutcome)
}

pub(super) fn show_epoch(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let committed =
        |task| history.effects.iter().any(|it| it.event.task == task && ends(&it.event));
    let place = pick(&history.shown, random, |line| committed(line.event.task))?;
    let shown = &mut history.shown[place].event;
    shown.epoch = if random.random() { shown.epoch + 1 } else { shown.epoch - 1 };
    Some(Class::DoubleOutcome)
}

pub(super) fn accept_twice(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| ends(&line.event))?;
    let mut again = history.effects[place].clone();
    match random.random_range(0..3) {
        0 => again.event.worker = "another".to_owned(),
        1 => again.event.epoch -= 1,
        _ => again.mono_ns += 1_000_000,
    }
    history.effects.push(again);
    Some(Class::DoubleOutcome)
}

pub(super) fn accept_stale(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| {
        let Effect { task, epoch, ev, .. } = line.event;
        let end = time_of(history, task, epoch, Ev::End);
        let next = successor(history, task, epoch);
        ev == Ev::CommitRefused && end.zip(next).is_some_and(|(end, next)| next < end)
    })?;
    let line = &mut history.effects[place];
    line.event.ev = Ev::CommitOk;
    if random.random() {
        line.event.outcome = Some(Kind::Retry);
    }
    Some(Class::StaleCommit)
}

pub(super) fn forget_end(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| line.event.status == Status::Success)?;
    let (task, epoch) = (history.shown[place].event.task, history.shown[place].event.epoch);
    let is_end = |it: &Effect| it.task == task && it.epoch == epoch && it.ev == Ev::End;
    history.effects.retain(|line| !is_end(&line.event));
    Some(Class::SuccessWithoutExecution)
}
