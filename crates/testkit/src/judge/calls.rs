//! What clients asked for and were told.

use std::time::Duration;

use duly_core::id::TaskId;

use super::book::{Book, OpenCall, Twins};
use super::workflows;
use crate::history::{Call, Phase, Verb};

/// Takes in one line of a call.
pub(super) fn note(book: &mut Book, at: u64, call: Call) {
    let is_of_workflow = matches!(call.f, Verb::SubmitWorkflow | Verb::CancelWorkflow);
    let named = call.key.as_deref();
    let key = named.filter(|_| !is_of_workflow).map(|key| book.key(key));
    let workflow = named.filter(|_| is_of_workflow).map(|key| book.workflows.place(key));
    if call.phase == Phase::Invoke {
        book.open.insert(call.op, OpenCall { key, task: call.task, workflow });
        return sent(book, at, &call, key, workflow);
    }
    // An answer need not repeat what was asked.
    let asked = book.open.remove(&call.op).unwrap_or_default();
    let (key, task) = (key.or(asked.key), call.task.or(asked.task));
    let workflow = workflow.or(asked.workflow);
    book.unknown_answers += u64::from(call.phase == Phase::Info);
    match (call.f, workflow) {
        (Verb::Submit, _) => submit_answered(book, at, call.phase, key, task),
        (Verb::SubmitWorkflow, Some(place)) => workflows::submit_answered(book, at, &call, place),
        (Verb::CancelWorkflow, Some(place)) => {
            workflows::cancel_answered(book, at, call.phase, place);
        }
        (Verb::SubmitWorkflow | Verb::CancelWorkflow, None) => {}
        (Verb::Cancel, _) => {
            if let Some(task) = task.filter(|_| call.phase == Phase::Ok) {
                let first = &mut book.task(task).cancelled_at;
                *first = earlier(*first, Some(at));
            }
        }
    }
}

fn sent(book: &mut Book, at: u64, call: &Call, key: Option<usize>, workflow: Option<usize>) {
    match (call.f, workflow) {
        (Verb::Submit, _) => {
            book.submits += 1;
            if let Some(key) = key {
                let key = &mut book.keys[key];
                key.sent += 1;
                key.run_at = earlier(key.run_at, call.run_at);
                key.delayed_until = earlier(key.delayed_until, delayed_until(at, call));
            }
        }
        (Verb::Cancel, _) => {
            if let Some(task) = call.task {
                book.task(task).cancel_asked = true;
            }
        }
        (Verb::SubmitWorkflow, Some(place)) => workflows::submit_sent(book, at, call, place),
        (Verb::CancelWorkflow, Some(place)) => workflows::cancel_sent(book, place),
        (Verb::SubmitWorkflow | Verb::CancelWorkflow, None) => {}
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
        Phase::Ok => {
            book.submits_ok += 1;
            acknowledged(book, at, key, task);
        }
    }
}

/// An answer says that there is a task of this key.
pub(super) fn acknowledged(book: &mut Book, at: u64, key: Option<usize>, task: Option<TaskId>) {
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
    let start = delay_after(at, call.delay_seconds.unwrap_or(0.0))?;
    (is_relative && call.run_at.is_none()).then_some(start)
}

/// So many seconds after `at`.
pub(super) fn delay_after(at: u64, seconds: f64) -> Option<u64> {
    let delay = Duration::try_from_secs_f64(seconds).ok()?;
    Some(at.saturating_add(u64::try_from(delay.as_nanos()).ok()?))
}

/// The smaller one of what there is.
pub(super) fn earlier<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}
