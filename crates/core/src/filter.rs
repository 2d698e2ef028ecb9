//! The language of filters, the same in API, CLI and dashboard, for task lists, dead letters and
//! bulk actions: terms such as `queue:mail`, separated by spaces, which must all hold.
//!
//! A value with spaces stands in quotes, `error:"connection refused"`; inside them `\"` is a
//! quotation mark and `\\` a backslash. `status` takes several values, by commas or by repeating
//! it, in upper or lower case, and `label.KEY` may be there for several keys; every other key is there once.
//!
//! To add a key: give `Key` a variant, a row in `KEYS`, an arm in `Filter::put` and a line in
//! the `Display` of [`Filter`].

mod error;
mod events;
mod term;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

pub use self::error::{BadFilter, Why};
pub use self::events::EventFilter;
use self::term::{Bare, Term};
use crate::error_group::ErrorGroup;
use crate::id::{TaskId, WorkflowId};
use crate::name::{QueueName, TypeName};
use crate::state::Status;
use crate::task::Failure;
use crate::time::Timestamp;

/// Characters of a filter: parsing must stay cheap.
const FILTER_CHARS: usize = 1_000;

/// What a filter asks for; everything when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In one of these states; in any when empty.
    pub statuses: BTreeSet<Status>,
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// Of this type.
    pub task_type: Option<TypeName>,
    /// With all of these labels.
    pub labels: BTreeMap<String, String>,
    /// At this instant or later: the first due time in lists of tasks, the failure among dead
    /// letters.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
    /// With this text in the code or the message of its error, in upper or lower case.
    pub error: Option<String>,
    /// With an error of this group.
    pub group: Option<ErrorGroup>,
    /// Last leased to a worker of this name.
    pub worker: Option<String>,
    /// Of this workflow.
    pub workflow: Option<WorkflowId>,
}

/// What a term can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Status,
    Queue,
    Type,
    Label,
    Since,
    Until,
    Error,
    Group,
    Worker,
    Workflow,
}

const NAME: &str = "a name that matches [A-Za-z0-9][A-Za-z0-9._-]{0,99}";
const INSTANT: &str = "a time ago such as 24h, 7d or PT24H, or an instant such as \
                       2030-01-31T08:00:00Z";
const STATUSES: &str = "BLOCKED, PENDING, RUNNING, SUCCESS, FAILED or CANCELLED, or several \
                        with commas between them";
/// The one key whose name goes on: with that of the label.
const LABEL: &str = "label.";

/// Every key, how it is spelled and what it takes.
const KEYS: [(Key, &str, &str); 10] = [
    (Key::Status, "status", STATUSES),
    (Key::Queue, "queue", NAME),
    (Key::Type, "type", NAME),
    (Key::Label, "label.KEY", "the label's value, in quotes if it is empty or has spaces"),
    (Key::Since, "since", INSTANT),
    (Key::Until, "until", INSTANT),
    (Key::Error, "error", "a part of the error's code or message, in quotes if it has spaces"),
    (Key::Group, "group", "an error group such as 0123456789abcdef"),
    (Key::Worker, "worker", "the name of a worker, in quotes if it has spaces"),
    (Key::Workflow, "workflow", "the id of a workflow"),
];

/// Writes the keys for people.
struct KeyNames;

impl fmt::Display for KeyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&KEYS.map(|(_, name, _)| name).join(", "))
    }
}

impl Filter {
    /// Reads a filter; `now` is what its relative times refer to.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, BadFilter> {
        Self::read(text, now, &Status::ALL)
    }

    /// Reads a filter for dead letters. They are FAILED, so that `status:FAILED` asks for nothing
    /// more and is left out, and any other state is refused rather than found nowhere.
    pub fn parse_dead(text: &str, now: Timestamp) -> Result<Self, BadFilter> {
        let filter = Self::read(text, now, &[Status::Failed])?;
        Ok(Self { statuses: BTreeSet::new(), ..filter })
    }

    /// Reads a filter that may name some states only; any other is refused rather than found
    /// nowhere.
    pub fn parse_among(text: &str, now: Timestamp, statuses: &[Status]) -> Result<Self, BadFilter> {
        Self::read(text, now, statuses)
    }

    fn read(text: &str, now: Timestamp, statuses: &[Status]) -> Result<Self, BadFilter> {
        if let Some((at, _)) = text.char_indices().nth(FILTER_CHARS) {
            return Err(BadFilter::new(at, &text[at..], Why::TooLong));
        }
        if let Some(at) = text.find('\0') {
            return Err(BadFilter::new(at, "", Why::Nul));
        }
        let mut filter = Self::default();
        let mut seen = Vec::new();
        for term in term::split(text) {
            let term = term?;
            let bad = |why| BadFilter::new(term.at, term.text, why);
            let known = |(key, name, _): &(Key, &str, &str)| match term.label {
                Some(_) => *key == Key::Label,
                None => *name == term.key,
            };
            let Some((key, name, wanted)) = KEYS.into_iter().find(known) else {
                return Err(bad(Why::UnknownKey));
            };
            if key != Key::Status {
                let mark = (key, term.label.clone());
                if seen.contains(&mark) {
                    return Err(bad(Why::Doubled { key: term.key.to_owned() }));
                }
                seen.push(mark);
            }
            if filter.put(key, &term, now, statuses).is_none() {
                let is_narrowed = key == Key::Status && statuses.len() < Status::ALL.len();
                return Err(bad(if is_narrowed {
                    Why::Status { allowed: statuses.to_vec() }
                } else {
                    Why::Value { key: name, wanted }
                }));
            }
        }
        Ok(filter)
    }

    /// Takes one value; nothing if the key does not take it.
    fn put(&mut self, key: Key, term: &Term<'_>, now: Timestamp, all: &[Status]) -> Option<()> {
        let value = term.value.as_str();
        let text = || (!value.is_empty()).then(|| value.to_owned());
        match key {
            Key::Status => {
                for name in value.split(',') {
                    let status =
                        all.iter().find(|status| status.as_str().eq_ignore_ascii_case(name))?;
                    self.statuses.insert(*status);
                }
            }
            Key::Queue => self.queue = Some(QueueName::new(value).ok()?),
            Key::Type => self.task_type = Some(TypeName::new(value).ok()?),
            Key::Label => {
                let label = term.label.clone().filter(|label| !label.is_empty())?;
                // A value that was forgotten is more likely than one that is empty.
                let value = if term.quoted { Some(value.to_owned()) } else { text() };
                self.labels.insert(label, value?);
            }
            Key::Since => self.since = Some(instant(value, now)?),
            Key::Until => self.until = Some(instant(value, now)?),
            Key::Error => self.error = Some(text()?),
            Key::Group => self.group = Some(value.parse().ok()?),
            Key::Worker => self.worker = Some(text()?),
            Key::Workflow => self.workflow = Some(value.parse().ok()?),
        }
        Some(())
    }

    /// Whether a task in this state may be meant.
    pub fn allows(&self, status: Status) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&status)
    }

    /// The ids of the tasks that are first due between `since` and `until`: an id begins with
    /// that time, so that the terms are a range of the ids.
    pub fn ids(&self) -> Range<TaskId> {
        let end = self.until.map_or(TaskId::from_bytes([0xff; 16]), TaskId::first_of);
        TaskId::first_of(self.since.unwrap_or(Timestamp::EPOCH))..end
    }
}

/// Whether an error's code or message has this text in it, in upper or lower case: what the term
/// `error` asks.
pub fn says(error: &Failure, text: &str) -> bool {
    let text = text.to_lowercase();
    error.code.to_lowercase().contains(&text) || error.message.to_lowercase().contains(&text)
}

/// An instant, or how long ago it was. One before 1970 becomes its beginning.
pub fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(instant) = Timestamp::parse(text) {
        return Some(instant);
    }
    let ago: Span = text.parse().ok()?;
    let ago = ago.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let ago = Duration::try_from(ago).ok()?;
    let millis = i64::try_from(ago.as_millis()).ok()?;
    Some(Timestamp::clamped(now.millis().saturating_sub(millis)))
}

/// As text that [`Filter::parse`] reads back; times are instants.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statuses, queue, task_type, labels, since, until, .. } = self;
        let Self { error, group, worker, workflow, .. } = self;
        let mut terms = Vec::new();
        if !statuses.is_empty() {
            let names: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
            terms.push(format!("status:{}", names.join(",")));
        }
        terms.extend(queue.iter().map(|queue| format!("queue:{queue}")));
        terms.extend(task_type.iter().map(|name| format!("type:{name}")));
        for (key, value) in labels {
            terms.push(format!("{LABEL}{}:{}", Bare::key(key), Bare::value(value)));
        }
        terms.extend(since.iter().map(|since| format!("since:{since}")));
        terms.extend(until.iter().map(|until| format!("until:{until}")));
        terms.extend(error.iter().map(|error| format!("error:{}", Bare::value(error))));
        terms.extend(group.iter().map(|group| format!("group:{group}")));
        terms.extend(worker.iter().map(|worker| format!("worker:{}", Bare::value(worker))));
        terms.extend(workflow.iter().map(|workflow| format!("workflow:{workflow}")));
        f.write_str(&terms.join(" "))
    }
}
