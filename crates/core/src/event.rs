//! Events: what has changed, for those who want to be told. A store writes an event in the transaction
//! of the change, but only if a sink has subscribed to it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::id::{TaskId, WorkflowId};
use crate::limits::SINK_NAME_CHARS;
use crate::name::{Lane, QueueName, ScheduleName, TenantName, TypeName};
use crate::schedule::{SkipReason, SlotRun};
use crate::time::Timestamp;
use crate::workflow::WorkflowStatus;

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

/// Which events someone wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Of these kinds.
    pub kinds: Kinds,
    /// Of this tenant; without one, of all tenants and of the installation.
    pub tenant: Option<TenantName>,
    /// About tasks of this queue, or about the queue.
    pub queue: Option<QueueName>,
    /// About tasks of this type.
    pub task_type: Option<TypeName>,
}

impl Subscription {
    /// To all events of these kinds.
    pub fn to(kinds: Kinds) -> Self {
        Self { kinds, tenant: None, queue: None, task_type: None }
    }

    /// Whether it wants this kind of event about tasks of this lane.
    pub fn wants(&self, kind: EventKind, lane: &Lane) -> bool {
        self.covers(kind, Some(&lane.tenant), Some(&lane.queue), Some(&lane.task_type))
    }

    /// Whether it wants this event.
    pub fn matches(&self, event: &Event) -> bool {
        let Place { tenant, queue, task_type } = &event.place;
        self.covers(event.kind, tenant.as_ref(), queue.as_ref(), task_type.as_ref())
    }

    fn covers(
        &self,
        kind: EventKind,
        tenant: Option<&TenantName>,
        queue: Option<&QueueName>,
        task_type: Option<&TypeName>,
    ) -> bool {
        self.kinds.has(kind)
            && self.tenant.as_ref().is_none_or(|it| Some(it) == tenant)
            && self.queue.as_ref().is_none_or(|it| Some(it) == queue)
            && self.task_type.as_ref().is_none_or(|it| Some(it) == task_type)
    }
}

/// Where something has happened; what is absent does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Whose; without one it concerns the installation.
    pub tenant: Option<TenantName>,
    /// The queue of the task, or the queue itself.
    pub queue: Option<QueueName>,
    /// The type of the task.
    pub task_type: Option<TypeName>,
}

impl Place {
    /// Of a tenant, in no queue.
    pub fn of(tenant: TenantName) -> Self {
        Self { tenant: Some(tenant), ..Self::default() }
    }
}

impl From<&Lane> for Place {
    fn from(lane: &Lane) -> Self {
        Self {
            tenant: Some(lane.tenant.clone()),
            queue: Some(lane.queue.clone()),
            task_type: Some(lane.task_type.clone()),
        }
    }
}

/// What has changed, committed with the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What has happened.
    pub kind: EventKind,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Where.
    pub place: Place,
    /// To what.
    pub about: About,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A task, as it was after the change.
    Task {
        /// Which.
        id: TaskId,
        /// In which run.
        run: u32,
        /// Under which epoch.
        epoch: u32,
    },
    /// Anything else.
    Other {
        /// Its id or name.
        subject: String,
        /// What there is to say: a JSON object.
        data: Arc<str>,
    },
}

impl Event {
    /// Something has happened to a task of this lane.
    pub fn of_task(
        kind: EventKind,
        lane: &Lane,
        (id, run, epoch): (TaskId, u32, u32),
        at: Timestamp,
    ) -> Self {
        Self { kind, at, place: Place::from(lane), about: About::Task { id, run, epoch } }
    }

    /// The task that it is about, if it is about one.
    pub fn task(&self) -> Option<TaskId> {
        match self.about {
            About::Task { id, .. } => Some(id),
            About::Other { .. } => None,
        }
    }

    fn other(
        kind: EventKind,
        place: Place,
        subject: impl ToString,
        data: Value,
        at: Timestamp,
    ) -> Self {
        let about = About::Other { subject: subject.to_string(), data: data.to_string().into() };
        Self { kind, at, place, about }
    }

    /// A workflow was submitted.
    pub fn workflow_started(
        tenant: &TenantName,
        id: WorkflowId,
        name: &str,
        at: Timestamp,
    ) -> Self {
        let data = json!({ "workflowId": id, "name": name });
        Self::other(EventKind::WorkflowStarted, Place::of(tenant.clone()), id, data, at)
    }

    /// All tasks of a workflow have ended.
    pub fn workflow_ended(
        tenant: &TenantName,
        id: WorkflowId,
        status: WorkflowStatus,
        at: Timestamp,
    ) -> Self {
        let data = json!({ "workflowId": id, "status": status.as_str() });
        Self::other(EventKind::WorkflowEnded, Place::of(tenant.clone()), id, data, at)
    }

    /// A slot of a schedule runs.
    pub fn schedule_fired(
        tenant: &TenantName,
        name: &ScheduleName,
        (slot, run): (Timestamp, SlotRun),
        at: Timestamp,
    ) -> Self {
        let data = match run {
            SlotRun::Task(id) => json!({ "schedule": name, "slot": slot, "taskId": id }),
            SlotRun::Workflow(id) => json!({ "schedule": name, "slot": slot, "workflowId": id }),
        };
        Self::other(EventKind::ScheduleFired, Place::of(tenant.clone()), name, data, at)
    }

    /// A slot of a schedule is skipped.
    pub fn schedule_skipped(
        tenant: &TenantName,
        name: &ScheduleName,
        (slot, reason): (Timestamp, SkipReason),
        at: Timestamp,
    ) -> Self {
        let data = json!({ "schedule": name, "slot": slot, "reason": reason.as_str() });
        Self::other(EventKind::ScheduleSkipped, Place::of(tenant.clone()), name, data, at)
    }

    /// The settings have a new version.
    pub fn settings_changed(version: u64, at: Timestamp) -> Self {
        let data = json!({ "version": version });
        Self::other(EventKind::SettingsChanged, Place::default(), "settings", data, at)
    }

    /// A queue was paused, with this note.
    pub fn queue_paused(tenant: &TenantName, queue: &QueueName, note: &str, at: Timestamp) -> Self {
        let data = json!({ "queue": queue, "note": note });
        Self::of_queue(EventKind::QueuePaused, tenant, queue, data, at)
    }

    /// A queue goes on.
    pub fn queue_resumed(tenant: &TenantName, queue: &QueueName, at: Timestamp) -> Self {
        let data = json!({ "queue": queue });
        Self::of_queue(EventKind::QueueResumed, tenant, queue, data, at)
    }

    fn of_queue(
        kind: EventKind,
        tenant: &TenantName,
        queue: &QueueName,
        data: Value,
        at: Timestamp,
    ) -> Self {
        let place = Place { queue: Some(queue.clone()), ..Place::of(tenant.clone()) };
        Self::other(kind, place, queue, data, at)
    }
}

/// Names a sink: who receives events. A sink of the system's own begins with `duly.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SinkName(Arc<str>);

/// The text is no name of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {SINK_NAME_CHARS} characters among a-z, 0-9, `.`, `_`, `-` and `:`")]
pub struct BadSinkName;

impl SinkName {
    /// Takes a name that keeps the rule.
    pub fn new(text: &str) -> Result<Self, BadSinkName> {
        let fits = |byte: u8| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'.' | b'_' | b'-' | b':')
        };
        let is_name = (1..=SINK_NAME_CHARS).contains(&text.len()) && text.bytes().all(fits);
        if is_name { Ok(Self(text.into())) } else { Err(BadSinkName) }
    }

    /// The sink that keeps a tenant's events for those who read its stream.
    pub fn stream_of(tenant: &TenantName) -> Self {
        Self(format!("duly.stream:{tenant}").into())
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SinkName {
    type Error = BadSinkName;

    fn try_from(text: String) -> Result<Self, BadSinkName> {
        Self::new(&text)
    }
}

impl From<SinkName> for String {
    fn from(name: SinkName) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// A place among the stored events: everything up to here was seen. Only its store compares positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// What was to be seen when this part of the events was opened, as the store writes it; empty where the
    /// number says all.
    pub view: Arc<str>,
    /// When that was.
    pub at: Timestamp,
    /// The row, within that part.
    pub number: u64,
    /// The event within the row, from 1; 0 is before the first one.
    pub index: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, at, number, index } = self;
        write!(f, "{}.{number}.{index}.{view}", at.millis())
    }
}

/// The text is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the position of an event")]
pub struct NotAPosition;

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let mut parts = text.splitn(4, '.');
        let mut next = || parts.next().ok_or(NotAPosition);
        let at: i64 = next()?.parse().map_err(|_| NotAPosition)?;
        let number = next()?.parse().map_err(|_| NotAPosition)?;
        let index = next()?.parse().map_err(|_| NotAPosition)?;
        let view = next()?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b',' | b'~');
        if !view.bytes().all(is_plain) {
            return Err(NotAPosition);
        }
        let at = Some(Timestamp::clamped(at)).filter(|it| it.millis() == at).ok_or(NotAPosition)?;
        Ok(Self { view: view.into(), at, number, index })
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

    #[test]
    fn a_subscription_wants_what_fits_all_it_says() {
        let name = |text| TenantName::new(text).unwrap();
        let lane = Lane {
            tenant: name("a"),
            queue: QueueName::new("mail").unwrap(),
            task_type: TypeName::new("email").unwrap(),
        };
        let all = Subscription::to(Kinds::OUTCOMES);
        assert!(all.wants(EventKind::TaskFailed, &lane));
        assert!(!all.wants(EventKind::TaskCreated, &lane));
        let own = Subscription { tenant: Some(name("a")), ..all.clone() };
        assert!(own.wants(EventKind::TaskFailed, &lane));
        let foreign = Subscription { tenant: Some(name("b")), ..all.clone() };
        assert!(!foreign.wants(EventKind::TaskFailed, &lane));
        let queue = QueueName::new("other").unwrap();
        assert!(
            !Subscription { queue: Some(queue), ..all.clone() }.wants(EventKind::TaskFailed, &lane)
        );
        let settings = Event::settings_changed(2, Timestamp::EPOCH);
        assert!(Subscription::to(Kinds::ALL).matches(&settings));
        assert!(!Subscription { kinds: Kinds::ALL, ..own }.matches(&settings));
    }

    #[test]
    fn a_position_reads_back_from_its_text() {
        let at = Timestamp::from_millis(1_900_000_000_123);
        let position = Position { view: "10:20:11,14~12:20:".into(), at, number: 7, index: 3 };
        assert_eq!(position.to_string().parse(), Ok(position));
        for bad in ["", "1", "1.2.3", "1.2.3.x", "-5.1.1.", "1.2.3.\n", "9999999999999999.1.1."] {
            assert_eq!(bad.parse::<Position>(), Err(NotAPosition), "{bad:?}");
        }
    }

    #[test]
    fn names_of_sinks_are_short_and_plain() {
        assert!(SinkName::new("archive-1").is_ok());
        for bad in ["", "A", "a b", &"x".repeat(SINK_NAME_CHARS + 1)] {
            assert_eq!(SinkName::new(bad), Err(BadSinkName), "{bad:?}");
        }
        let tenant = TenantName::new("acme").unwrap();
        assert_eq!(SinkName::stream_of(&tenant).as_str(), "duly.stream:acme");
    }
}
