//! Histories as text, one event per line, times in milliseconds and the TTL a second:
//!
//! - `0 submit a ok` (or `info`, `fail`, `open`: never answered), with `due=500`, `delay=500`,
//!   `jitter=100`, `task=b`
//! - `5 cancel a ok`
//! - `10 w1 start a 1` and `end`; `11 w1 ok a 1 success` and `refused`, `unknown`; with `pid=2`,
//!   `run=2`; `10-20 w1 runs a 1 success` is a start, an end and an accepted outcome
//! - `5-9 pause w1`, `5 kill server`
//! - `shown a SUCCESS 1` with the epochs of `lost=1,2`, `timeout=3`, `failed=4`, and `attempt=`,
//!   `losses=`, `key=`, `run=` where they are to differ from what follows from those; with
//!   `after=b:success+c:done` for the tasks that it depends on, and with `workflow=f`
//! - `0 submit-workflow f ok tasks=a,b<a:success+c:done`, `5 cancel-workflow f ok`
//! - `shown-workflow f SUCCESS` with `open=1`, `fail-fast=true`, `id=g`

use std::collections::HashMap;

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::workflow::Condition;
use duly_testkit::effects::{Effect, Ev, Kind};
use duly_testkit::history::{FaultKind, Member, Phase, Shown, ShownWorkflow, Verb};
use serde::de::DeserializeOwned;

use crate::history::{About, History, effect, id, workflow_id};

/// When everything is shown.
const END: u64 = 1_000_000;

/// Judges a script and compares the names of all classes that were found.
#[track_caller]
pub(crate) fn judged(script: &str, expected: &[&str]) {
    let (findings, _) = parse(script).judge();
    let found: Vec<_> = findings.classes().into_iter().map(|class| class.name()).collect();
    assert_eq!(found, expected, "{script}\n{:#?}", findings.first());
}

/// Reads a script.
pub(crate) fn parse(script: &str) -> History {
    let mut history = History::default();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (options, words): (Vec<_>, Vec<_>) =
            line.split_whitespace().partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|option| option.split_once('=')).collect();
        Event { words, options }.add_to(&mut history);
    }
    history
}

struct Event<'a> {
    words: Vec<&'a str>,
    options: HashMap<&'a str, &'a str>,
}

/// A word of the formats, such as `retry`.
fn word<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_value(text.into()).unwrap_or_else(|_| panic!("{text:?} means nothing"))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

impl Event<'_> {
    fn add_to(&self, history: &mut History) {
        let times = self.words[0].split_once('-').unwrap_or((self.words[0], self.words[0]));
        match self.words[..] {
            ["shown", task, status, epoch] => {
                history.show(END, self.shown(task, word(status), number(epoch)));
            }
            [_, call @ ("submit" | "cancel"), key, answer] => {
                let task = self.options.get("task").copied().unwrap_or(key);
                let due = self.options.get("due").map(|due| number(due));
                let time = |name| self.options.get(name).map(|ms| number(ms));
                let (delay, jitter) = (time("delay"), time("jitter"));
                let answer = (answer != "open").then(|| word::<Phase>(answer));
                let about = About { key, task, due, delay, jitter };
                history.call(number(times.0), word::<Verb>(call), answer, &about);
            }
            ["shown-workflow", name, status] => {
                let option = |key: &str| self.options.get(key).copied();
                let shown = ShownWorkflow {
                    workflow: workflow_id(option("id").unwrap_or(name)),
                    key: Some(name.to_owned()),
                    status: word(status),
                    open: option("open").map_or(0, number),
                    fail_fast: option("fail-fast").is_some(),
                };
                history.show_workflow(END, shown);
            }
            [_, call @ ("submit-workflow" | "cancel-workflow"), name, answer] => {
                let answer = (answer != "open").then(|| word::<Phase>(answer));
                let tasks = self.options.get("tasks").into_iter();
                let members = tasks.flat_map(|text| text.split(',')).map(member).collect();
                history.call_workflow(number(times.0), word::<Verb>(call), answer, name, members);
            }
            [_, kind, target] => {
                let kind: FaultKind = word(kind);
                history.fault(number(times.0), number(times.1), kind, target);
            }
            [_, worker, "runs", task, epoch, outcome] => {
                let (from, to): (u64, u64) = (number(times.0), number(times.1));
                let say = |ev, outcome| self.effect(worker, task, epoch, ev, outcome);
                history.effect(from, say(Ev::Start, None));
                history.effect(to, say(Ev::End, None));
                history.effect(to + 1, say(Ev::CommitOk, Some(word(outcome))));
            }
            [_, worker, what, task, epoch] => {
                let ev = if what == "start" { Ev::Start } else { Ev::End };
                history.effect(number(times.0), self.effect(worker, task, epoch, ev, None));
            }
            [_, worker, what, task, epoch, outcome] => {
                let ev: Ev = word(&format!("commit_{what}"));
                let outcome = Some(word(outcome));
                history.effect(number(times.0), self.effect(worker, task, epoch, ev, outcome));
            }
            _ => panic!("not an event: {:?}", self.words),
        }
    }

    fn effect(&self, worker: &str, task: &str, epoch: &str, ev: Ev, kind: Option<Kind>) -> Effect {
        let effect = effect(worker, task, number(epoch), ev, kind);
        let option = |name, or| self.options.get(name).map_or(or, |value| number(value));
        Effect { pid: option("pid", 1), run: option("run", effect.run), ..effect }
    }

    fn epochs(&self, name: &str) -> Vec<u32> {
        let list = self.options.get(name).copied().unwrap_or_default();
        list.split(',').filter(|epoch| !epoch.is_empty()).map(number).collect()
    }

    fn shown(&self, task: &str, status: Status, epoch: u32) -> Shown {
        let codes = [("lost", "WORKER_LOST"), ("timeout", "TIMEOUT"), ("failed", "TOLD_TO")];
        let of = |(name, code): (&str, &str)| {
            self.epochs(name).into_iter().map(|epoch| (epoch, code.to_owned())).collect::<Vec<_>>()
        };
        let mut attempts: Vec<_> = codes.into_iter().flat_map(of).collect();
        attempts.sort_unstable();
        let lost = self.epochs("lost").len();
        let charged = attempts.len() - lost + usize::from(status == Status::Success);
        let count = |name, or: usize| {
            let or = u32::try_from(or).expect("a script is short");
            self.options.get(name).map_or(or, |value| number(value))
        };
        Shown {
            task: id(task),
            key: Some(self.options.get("key").map_or(task, |key| key).to_owned()),
            status,
            run: count("run", 1),
            attempt: count("attempt", charged),
            epoch,
            losses: count("losses", lost),
            attempts,
            dependencies: self.options.get("after").map_or_else(Vec::new, |text| after(text)),
            workflow: self.options.get("workflow").map(|name| workflow_id(name)),
        }
    }
}

/// The tasks that another one depends on.
fn after(text: &str) -> Vec<(TaskId, Condition)> {
    needs(text).into_iter().map(|(task, on)| (id(&task), on)).collect()
}

fn needs(text: &str) -> Vec<(String, Condition)> {
    let need = |text: &str| {
        let (task, on) = text.split_once(':').expect("a task and a condition");
        (task.to_owned(), word(on))
    };
    text.split('+').map(need).collect()
}

/// A task of a workflow.
fn member(text: &str) -> (String, Member) {
    let (name, parents) = text.split_once('<').unwrap_or((text, ""));
    let needs = if parents.is_empty() { Vec::new() } else { needs(parents) };
    (name.to_owned(), Member { needs, delay_seconds: None })
}
