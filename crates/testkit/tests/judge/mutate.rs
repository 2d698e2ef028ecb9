//! Changes to a valid history, each with the class of violation that it is by construction. What
//! a change needs it looks up in the lines themselves; it is left out where it cannot be made.

mod of_counts;
mod of_leases;
mod of_outcomes;
mod of_sets;

use std::ops::RangeInclusive;

use duly_core::id::TaskId;
use duly_testkit::effects::{Effect, Ev};
use duly_testkit::history::{Call, FaultKind, Phase, Shown, Verb};
use duly_testkit::journal::Line;
use duly_testkit::judge::Class;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::history::{History, ms};

type Mutation = fn(&mut History, &mut StdRng) -> Option<Class>;

pub(crate) const MUTATIONS: [(&str, Mutation); 23] = [
    ("an acknowledged task is dropped", of_sets::drop_acked),
    ("an acknowledged task is left waiting", of_sets::leave_waiting),
    ("an unacknowledged task is left running", of_sets::leave_unknown_running),
    ("two tasks get one key", of_sets::share_key),
    ("a second submit is answered with another task", of_sets::answer_twice),
    ("no submit of a task was sent", of_sets::forget_submit),
    ("every submit of a task was refused", of_sets::refuse_submit),
    ("a cancelled task is not", of_sets::uncancel),
    ("no client asked for a cancel", of_sets::forget_cancel),
    ("a cancelled task starts late", of_sets::start_cancelled),
    ("an accepted outcome has another epoch", of_outcomes::change_epoch),
    ("another epoch is shown", of_outcomes::show_epoch),
    ("an outcome is accepted twice", of_outcomes::accept_twice),
    ("a stale outcome is accepted", of_outcomes::accept_stale),
    ("a success has no end", of_outcomes::forget_end),
    ("a lease is started twice", of_leases::start_twice),
    ("a start is early", of_leases::start_early),
    ("a start is earlier than its delay", of_leases::start_before_delay),
    ("a lower epoch starts later", of_leases::start_back),
    ("a loss that explains an overlap is gone", of_leases::forget_loss),
    ("nothing happened to a lost worker", of_leases::forget_faults),
    ("attempts are counted wrongly", of_counts::change_attempt),
    ("losses are counted wrongly", of_counts::change_losses),
];

/// One of all places that fit.
fn pick<T>(
    lines: &[Line<T>],
    random: &mut StdRng,
    fits: impl Fn(&Line<T>) -> bool,
) -> Option<usize> {
    let places: Vec<_> = (0..lines.len()).filter(|&place| fits(&lines[place])).collect();
    places.choose(random).copied()
}

fn shown_of(history: &History, task: TaskId) -> Option<&Shown> {
    history.shown.iter().map(|line| &line.event).find(|shown| shown.task == task)
}

fn is_acked(history: &History, task: TaskId) -> bool {
    let mut answers = history.client.iter().map(|line| &line.event);
    answers.any(|it| it.f == Verb::Submit && it.phase == Phase::Ok && it.task == Some(task))
}

/// When its cancel was acknowledged.
fn cancelled_at(history: &History, task: TaskId) -> Option<u64> {
    let is_it =
        |call: &Call| call.f == Verb::Cancel && call.phase == Phase::Ok && call.task == Some(task);
    history.client.iter().find(|line| is_it(&line.event)).map(ms)
}

/// When a line of this kind was written first.
fn time_of(history: &History, task: TaskId, epoch: u32, ev: Ev) -> Option<u64> {
    let is_it = |it: &Effect| it.task == task && it.epoch == epoch && it.ev == ev;
    history.effects.iter().filter(|line| is_it(&line.event)).map(ms).min()
}

/// When an execution under a higher epoch began first.
fn successor(history: &History, task: TaskId, epoch: u32) -> Option<u64> {
    let is_it = |it: &Effect| it.task == task && it.epoch > epoch && it.ev == Ev::Start;
    history.effects.iter().filter(|line| is_it(&line.event)).map(ms).min()
}

/// Whether anything that is not a mere abort happened then, to the worker or to everybody.
fn met(history: &History, worker: &str, when: RangeInclusive<u64>) -> bool {
    // Both lines of a fault follow each other here.
    history.nemesis.chunks(2).any(|spell| {
        let fault = &spell[0].event;
        let reaches = [worker, "server", "link"].contains(&fault.target.as_str());
        let meets = ms(&spell[0]) <= *when.end() && ms(&spell[1]) >= *when.start();
        reaches && meets && fault.fault != FaultKind::Abort
    })
}
