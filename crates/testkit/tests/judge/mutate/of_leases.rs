//! Changes of what was executed when, and of why leases ended.

use std::time::Duration;

use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::history::{Call, Verb};
use duly_testkit::judge::Class;
use rand::Rng as _;
use rand::rngs::StdRng;

use super::{met, pick, shown_of, successor, time_of};
use crate::history::{EPOCH, History, TTL, move_to, ms};

pub(super) fn start_twice(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| line.event.ev == Ev::Start)?;
    let mut again = history.effects[place].clone();
    if random.random() {
        again.event.worker = "another".to_owned();
    }
    let at = ms(&again) + random.random_range(0..50);
    move_to(&mut again, at);
    history.effects.push(again);
    Some(Class::SameEpochTwice)
}

pub(super) fn start_early(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let due = |history: &History, effect: &Effect| {
        let key = shown_of(history, effect.task)?.key.clone();
        let is_it = |call: &Call| call.f == Verb::Submit && call.key == key;
        let call = history.client.iter().map(|line| &line.event).find(|call| is_it(call))?;
        u64::try_from(call.run_at? - EPOCH).ok().filter(|due| *due > 2)
    };
    let place = pick(&history.effects, random, |line| {
        line.event.ev == Ev::Start && due(history, &line.event).is_some()
    })?;
    let due = due(history, &history.effects[place].event)?;
    move_to(&mut history.effects[place], random.random_range(0..due - 1));
    Some(Class::EarlyStart)
}

pub(super) fn start_before_delay(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let until = |history: &History, effect: &Effect| {
        let key = shown_of(history, effect.task)?.key.clone();
        let is_it = |call: &Call| call.f == Verb::Submit && call.key == key;
        let first = history.client.iter().find(|line| is_it(&line.event))?;
        let delay = Duration::from_secs_f64(first.event.delay_seconds?).as_millis();
        u64::try_from(delay).ok().map(|delay| ms(first) + delay).filter(|until| *until > 2)
    };
    let place = pick(&history.effects, random, |line| {
        line.event.ev == Ev::Start && until(history, &line.event).is_some()
    })?;
    let until = until(history, &history.effects[place].event)?;
    move_to(&mut history.effects[place], random.random_range(0..until - 1));
    Some(Class::EarlyStart)
}

/// The start of a lease whose successor has begun moves behind it, to a worker that was fine.
pub(super) fn start_back(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| {
        let Effect { task, epoch, ev, .. } = line.event;
        let next = successor(history, task, epoch);
        let calm = |next: u64| !met(history, "new", next.saturating_sub(2 * TTL)..=next + 20);
        ev == Ev::Start && next.is_some_and(calm)
    })?;
    let Effect { task, epoch, .. } = history.effects[place].event;
    let at = successor(history, task, epoch)? + random.random_range(1..20);
    let line = &mut history.effects[place];
    line.event.worker = "new".to_owned();
    move_to(line, at);
    Some(Class::EpochWentBack)
}

pub(super) fn forget_loss(history: &mut History, random: &mut StdRng) -> Option<Class> {
    let place = pick(&history.effects, random, |line| {
        let Effect { task, epoch, ref worker, ev, .. } = line.event;
        let start = ms(line);
        let calm = !met(history, worker, start.saturating_sub(2 * TTL)..=start + TTL);
        let end = time_of(history, task, epoch, Ev::End);
        let next = successor(history, task, epoch);
        let overlaps = next.is_some_and(|next| start < next && end.is_some_and(|end| next < end));
        let calm = calm && next.is_some_and(|next| !met(history, "server", start..=next));
        let lost = (epoch, "WORKER_LOST".to_owned());
        let was_lost = shown_of(history, task)
            .is_some_and(|it| it.attempts.contains(&lost) && it.status != Status::Cancelled);
        ev == Ev::Start && was_lost && overlaps && calm
    })?;
    let Effect { task, epoch, .. } = history.effects[place].event;
    let shown = history.shown.iter_mut().find(|line| line.event.task == task)?;
    shown.event.attempts.retain(|(of, _)| *of != epoch);
    shown.event.losses -= 1;
    Some(Class::Overlap)
}

pub(super) fn forget_faults(history: &mut History, random: &mut StdRng) -> Option<Class> {
    pick(&history.effects, random, |line| {
        let Effect { task, epoch, ref worker, ev, .. } = line.event;
        let lost = (epoch, "WORKER_LOST".to_owned());
        let was_lost = shown_of(history, task).is_some_and(|it| it.attempts.contains(&lost));
        // Another process under its name tells that it died by itself.
        let mut lines = history.effects.iter().map(|line| &line.event);
        let died = lines.any(|it| it.worker == *worker && it.pid != line.event.pid);
        ev == Ev::Start && was_lost && !died
    })?;
    history.nemesis.clear();
    Some(Class::LostWithoutCause)
}
