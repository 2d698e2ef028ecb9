//! Changes of what exists, and of what was cancelled.

use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::history::{Call, Phase, Verb};
use duly_testkit::judge::Class;
use rand::Rng as _;
use rand::rngs::StdRng;

use super::{cancelled_at, is_acked, met, pick};
use crate::history::{About, History, effect};

pub(super) fn drop_acked(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| is_acked(history, line.event.task))?;
    history.shown.remove(place);
    Some(Class::Lost)
}

pub(super) fn leave_waiting(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| is_acked(history, line.event.task))?;
    history.shown[place].event.status = Status::Pending;
    Some(Class::Lost)
}

pub(super) fn leave_unknown_running(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| !is_acked(history, line.event.task))?;
    history.shown[place].event.status = Status::Running;
    Some(Class::Unfinished)
}

pub(super) fn share_key(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |_| history.shown.len() > 1)?;
    let other =
        pick(&history.shown, random, |line| line.event.task != history.shown[place].event.task)?;
    history.shown[place].event.key = history.shown[other].event.key.clone();
    Some(Class::Duplicated)
}

pub(super) fn answer_twice(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let is_ok = |call: &Call| call.f == Verb::Submit && call.phase == Phase::Ok;
    let place = pick(&history.client, random, |line| is_ok(&line.event))?;
    let key = history.client[place].event.key.clone()?;
    let about = About { key: &key, task: "other", ..About::default() };
    history.call(6_000, Verb::Submit, Some(Phase::Ok), &about);
    Some(Class::Duplicated)
}

pub(super) fn forget_submit(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |_| true)?;
    let key = history.shown[place].event.key.clone();
    history.client.retain(|line| line.event.key != key);
    Some(Class::Invented)
}

pub(super) fn refuse_submit(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| is_acked(history, line.event.task))?;
    let key = history.shown[place].event.key.clone();
    for line in history.client.iter_mut().filter(|line| line.event.key == key) {
        if line.event.phase != Phase::Invoke {
            (line.event.phase, line.event.task) = (Phase::Fail, None);
        }
    }
    Some(Class::Invented)
}

pub(super) fn uncancel(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place =
        pick(&history.shown, random, |line| cancelled_at(history, line.event.task).is_some())?;
    let statuses = [Status::Success, Status::Failed, Status::Pending];
    history.shown[place].event.status = statuses[random.random_range(0..3)];
    Some(Class::CancelUndone)
}

pub(super) fn forget_cancel(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.shown, random, |line| line.event.status == Status::Cancelled)?;
    let task = Some(history.shown[place].event.task);
    history.client.retain(|line| line.event.f != Verb::Cancel || line.event.task != task);
    Some(Class::CancelledUnasked)
}

pub(super) fn start_cancelled(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let late = random.random_range(2_001..4_000);
    let place = pick(&history.shown, random, |line| {
        let at = cancelled_at(history, line.event.task);
        at.is_some_and(|at| !met(history, "new", at..=at + late))
    })?;
    let shown = &history.shown[place].event;
    let at = cancelled_at(history, shown.task)?;
    let start = effect("new", "any", shown.epoch, Ev::Start, None);
    let start = Effect { task: shown.task, ..start };
    history.effect(at + late, start);
    Some(Class::CancelUndone)
}
