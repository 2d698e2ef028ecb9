//! What can happen, and sets of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What has happened. The number is how stores keep it, and its bit in [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A task was stored.
    TaskCreated = 0,
    /// Its last dependency was met: BLOCKED → PENDING.
    TaskUnblocked = 1,
    /// It was granted: PENDING → RUNNING.
    TaskStarted = 2,
    /// Its handler has reported progress; several reports may be one event.
    TaskProgressed = 3,
    /// An attempt has failed, and another one follows.
    TaskRetried = 4,
    /// Its lease was given back, and nothing was charged.
    TaskReleased = 5,
    /// Its worker has died.
    TaskLost = 6,
    /// A user has changed it, or has cut its wait for a retry short.
    TaskEdited = 7,
    /// Its run has ended well.
    TaskSucceeded = 8,
    /// Its run has failed.
    TaskFailed = 9,
    /// Its run was cancelled.
    TaskCancelled = 10,
    /// Its next run has begun.
    TaskReplayed = 11,
    /// It is gone.
    TaskDeleted = 12,
    /// A workflow was submitted.
    WorkflowStarted = 13,
    /// All tasks of a workflow have ended.
    WorkflowEnded = 14,
    /// A slot of a schedule runs.
    ScheduleFired = 15,
    /// A slot of a schedule is skipped.
    ScheduleSkipped = 16,
    /// The settings have a new version.
    SettingsChanged = 17,
    /// A queue was paused.
    QueuePaused = 18,
    /// A queue goes on.
    QueueResumed = 19,
    /// A node has joined.
    NodeJoined = 20,
    /// A node has left.
    NodeLeft = 21,
    /// Another node leads.
    LeaderChanged = 22,
}

impl EventKind {
    /// Every kind, by number.
    pub const ALL: [Self; 23] = [
        Self::TaskCreated,
        Self::TaskUnblocked,
        Self::TaskStarted,
        Self::TaskProgressed,
        Self::TaskRetried,
        Self::TaskReleased,
        Self::TaskLost,
        Self::TaskEdited,
        Self::TaskSucceeded,
        Self::TaskFailed,
        Self::TaskCancelled,
        Self::TaskReplayed,
        Self::TaskDeleted,
        Self::WorkflowStarted,
        Self::WorkflowEnded,
        Self::ScheduleFired,
        Self::ScheduleSkipped,
        Self::SettingsChanged,
        Self::QueuePaused,
        Self::QueueResumed,
        Self::NodeJoined,
        Self::NodeLeft,
        Self::LeaderChanged,
    ];

    /// How stores keep it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name, such as `task.succeeded`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TaskCreated => "task.created",
            Self::TaskUnblocked => "task.unblocked",
            Self::TaskStarted => "task.started",
            Self::TaskProgressed => "task.progressed",
            Self::TaskRetried => "task.retried",
            Self::TaskReleased => "task.released",
            Self::TaskLost => "task.lost",
            Self::TaskEdited => "task.edited",
            Self::TaskSucceeded => "task.succeeded",
            Self::TaskFailed => "task.failed",
            Self::TaskCancelled => "task.cancelled",
            Self::TaskReplayed => "task.replayed",
            Self::TaskDeleted => "task.deleted",
            Self::WorkflowStarted => "workflow.started",
            Self::WorkflowEnded => "workflow.ended",
            Self::ScheduleFired => "schedule.fired",
            Self::ScheduleSkipped => "schedule.skipped",
            Self::SettingsChanged => "settings.changed",
            Self::QueuePaused => "queue.paused",
            Self::QueueResumed => "queue.resumed",
            Self::NodeJoined => "node.joined",
            Self::NodeLeft => "node.left",
            Self::LeaderChanged => "leader.changed",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is no kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a kind of event, such as task.failed")]
pub struct NotAKind;

impl FromStr for EventKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<Self, NotAKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(NotAKind)
    }
}

/// A set of kinds, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kinds(u32);

impl Kinds {
    /// None.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self = Self((1 << EventKind::ALL.len()) - 1);
    /// How runs of tasks end.
    pub const OUTCOMES: Self = Self(
        1 << EventKind::TaskSucceeded.number()
            | 1 << EventKind::TaskFailed.number()
            | 1 << EventKind::TaskCancelled.number(),
    );

    /// Whether this kind is one of them.
    pub const fn has(self, kind: EventKind) -> bool {
        self.0 & (1 << kind.number()) != 0
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As stores keep it.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Those of the bits that stand for kinds.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Each of them, by number.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

/// How sets of kinds are written.
pub const KINDS: &str = "kinds of events such as task.failed, or task.* for all about tasks, or several \
                         with commas between them";

/// The text does not name kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {KINDS}")]
pub struct NotKinds;

impl FromStr for Kinds {
    type Err = NotKinds;

    /// Reads names with commas between them; one that ends with `.*` stands for all that begin so.
    fn from_str(text: &str) -> Result<Self, NotKinds> {
        let of = |name: &str| -> Result<Self, NotKinds> {
            let Some(start) = name.strip_suffix('*').filter(|start| start.ends_with('.')) else {
                let kind = name.parse::<EventKind>().map_err(|_| NotKinds)?;
                return Ok([kind].into_iter().collect());
            };
            let begins = |kind: &EventKind| kind.name().starts_with(start);
            let kinds: Self = EventKind::ALL.into_iter().filter(begins).collect();
            if kinds == Self::NONE { Err(NotKinds) } else { Ok(kinds) }
        };
        text.split(',').try_fold(Self::NONE, |kinds, name| Ok(kinds.and(of(name.trim())?)))
    }
}

impl FromIterator<EventKind> for Kinds {
    fn from_iter<T: IntoIterator<Item = EventKind>>(kinds: T) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind.number()))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(EventKind::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_number_and_its_name() {
        for (number, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.number()), number, "{kind}");
            assert_eq!(EventKind::from_number(kind.number()), Some(kind));
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert_eq!(EventKind::from_number(23), None);
        assert_eq!("task".parse::<EventKind>(), Err(NotAKind));
    }

    #[test]
    fn a_set_of_kinds_has_what_it_was_made_of() {
        let kinds: Kinds = [EventKind::TaskFailed, EventKind::LeaderChanged].into_iter().collect();
        assert_eq!(Kinds::from_bits(kinds.bits()), kinds);
        assert_eq!(
            kinds.iter().collect::<Vec<_>>(),
            [EventKind::TaskFailed, EventKind::LeaderChanged]
        );
        assert_eq!(Kinds::ALL.iter().count(), EventKind::ALL.len());
        assert!(Kinds::from_bits(u32::MAX) == Kinds::ALL && Kinds::NONE.iter().next().is_none());
    }
}
