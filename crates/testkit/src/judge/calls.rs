//! What clients asked for and were told.

use std::time::Duration;

use duly_core::id::TaskId;

use super::book::{Book, OpenCall, Twins};
use crate::history::{Call, Phase, Verb};

/// Takes in one line of a call.
pub(super) fn note(book: &mut Book, at: u64, call: Call) {
    let key = call.key.as_deref().map(|key| book.key(key));
    if call.phase == Phase::Invoke {
        return sent(book, at, &call, key);
    }
    // An answer need not repeat what was asked.
    let asked = book.open.remove(&call.op).unwrap_or_default();
    let (key, task) = (key.or(asked.key), call.task.or(asked.task));
    book.unknown_answers += u64::from(call.phase == Phase::Info);
    match call.f {
        Verb::Submit => submit_answered(book, at, call.phase, key, task),
        Verb::Cancel => {
            if let Some(task) = task.filter(|_| call.phase == Phase::Ok) {
                let first = &mut book.task(task).cancelled_at;
                *first = Some(first.map_or(at, |before| before.min(at)));
            }
        }
    }
}

fn sent(book: &mut Book, at: u64, call: &Call, key: Option<usize>) {
    book.open.insert(call.op, OpenCall { key, task: call.task });
    match call.f {
        Verb::Submit => {
            book.submits += 1;
            if let Some(key) = key {
                let key = &mut book.keys[key];
                key.sent += 1;
                key.run_at = earlier(key.run_at, call.run_at);
                key.delayed_until = earlier(key.delayed_until, delayed_until(at, call));
            }
        }
        Verb::Cancel => {
            if let Some(task) = call.task {
                book.task(task).cancel_asked = true;
            }
        }
    }
}

fn submit_answered(
    book: &mut Book,
    at: u64,
    phase: Phase,
    key: Option<usize>,
    task: Option<TaskId>,
) {
    match phase {
        Phase::Invoke => {}
        Phase::Fail => {
            if let Some(key) = key {
                book.keys[key].failed += 1;
            }
        }
        Phase::Info => {
            if let Some(task) = task {
                book.task(task).is_named = true;
            }
        }
        Phase::Ok => acknowledged(book, at, key, task),
    }
}

fn acknowledged(book: &mut Book, at: u64, key: Option<usize>, task: Option<TaskId>) {
    book.submits_ok += 1;
    if let Some(key) = key {
        let first = &mut book.keys[key].acked_at;
        *first = earlier(*first, Some(at));
    }
    let Some(id) = task else { return };
    let task = book.task(id);
    task.is_named = true;
    task.acked_at = earlier(task.acked_at, Some(at));
    let Some(key) = key else { return };
    let other_key = task.key.replace(key).filter(|other| *other != key);
    let twins = other_key.map(|other| Twins { at, keys: [other, key], tasks: [id; 2] });
    book.twins.extend(twins);
    let other_task = book.keys[key].acked.replace(id).filter(|other| *other != id);
    let twins = other_task.map(|other| Twins { at, keys: [key; 2], tasks: [other, id] });
    book.twins.extend(twins);
}

/// The earliest start of a submit that was sent at `at`, if it gives a delay or a jitter. A jitter
/// adds an unknown time: without a delay the start may follow the send at once. With `runAt` the
/// start does not depend on the send time.
fn delayed_until(at: u64, call: &Call) -> Option<u64> {
    let is_relative = call.delay_seconds.is_some() || call.jitter_seconds.is_some();
    let delay = Duration::try_from_secs_f64(call.delay_seconds.unwrap_or(0.0)).ok()?;
    let delay = u64::try_from(delay.as_nanos()).ok()?;
    (is_relative && call.run_at.is_none()).then(|| at.saturating_add(delay))
}

/// The smaller one of what there is.
fn earlier<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}
