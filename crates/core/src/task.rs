//! A task as the store holds it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::back_off::BackOff;
use crate::id::{SessionId, TaskId};
use crate::lease::Lease;
use crate::limits::{AGEING_PER_LEVEL, ERROR_BYTES, PRIORITY, QUARANTINE_LOSSES};
use crate::name::Lane;
use crate::progress::ReportedProgress;
use crate::state::Status;
use crate::time::Timestamp;
use crate::workflow::{Dependency, Links};

/// Which of two tasks of about the same time runs first: 0 ..= 9, 9 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Takes a level from 0 to 9.
    pub fn new(level: u8) -> Option<Self> {
        (level <= PRIORITY).then_some(Self(level))
    }

    /// The level, 9 first.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The level upside down, 0 first: the order in which due indexes keep it.
    pub const fn rank(self) -> u8 {
        PRIORITY - self.0
    }

    /// The priority of this rank.
    pub fn from_rank(rank: u8) -> Option<Self> {
        PRIORITY.checked_sub(rank).map(Self)
    }
}

/// The place of a task in the order of claims: its run time, made earlier by its priority.
pub fn claim_order(run_at: Timestamp, priority: Priority) -> i64 {
    let ageing = i64::try_from(AGEING_PER_LEVEL.as_millis()).expect("a minute fits");
    run_at.millis() - i64::from(priority.level()) * ageing
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable, upper-case reason for programs.
    pub code: String,
    /// For people.
    pub message: String,
}

impl Failure {
    /// A failure; a message over the limit is cut.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.len() > ERROR_BYTES {
            message.truncate(message.floor_char_boundary(ERROR_BYTES));
            message.push('…');
        }
        Self { code: code.to_owned(), message }
    }
}

/// One try of a task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which run of the task.
    pub run: u32,
    /// Which attempt of the run; one that was lost was not charged, and its number comes again.
    pub attempt: u32,
    /// Under which grant.
    pub epoch: u32,
    /// When its handler started, or when its lease was granted if that is all that is known.
    pub started_at: Timestamp,
    /// When its end was committed.
    pub ended_at: Timestamp,
    /// Who ran it.
    pub worker: Option<String>,
    /// Why it failed or was lost; nothing of a success.
    pub error: Option<Failure>,
    /// The end of what it logged; [`crate::limits::LOG_EXCERPT_BYTES`] at the most.
    pub log: Option<Arc<str>>,
}

impl Failure {
    /// The worker's process ended with the task.
    pub fn worker_lost(losses: u32) -> Self {
        let times = if losses == 1 { "once".to_owned() } else { format!("{losses} times") };
        Self::new("WORKER_LOST", format!("the worker died {times} while it ran this task"))
    }

    /// The lease was past its deadline.
    pub fn overdue() -> Self {
        Self::new("TIMEOUT", "the worker did not finish within the lease's deadline")
    }
}

/// A task that is about to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTask {
    /// Minted from the store's clock; a submit repeated with the same id changes nothing.
    pub id: TaskId,
    /// Tenant, queue and type.
    pub lane: Lane,
    /// Its level.
    pub priority: Priority,
    /// When it may start, unless `delay` says so. With a delay this is an estimate, which only the id
    /// carries.
    pub run_at: Timestamp,
    /// How long it waits from the moment the store takes it. The store adds this to its own clock:
    /// the caller's idea of the time may be behind, and the task would start early.
    pub delay: Option<Duration>,
    /// How many failed attempts may be followed by another.
    pub retries: u32,
    /// How long they wait for each other.
    pub back_off: BackOff,
    /// How long its handler may run.
    pub timeout: Option<Duration>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// JSON text, checked.
    pub payload: Arc<str>,
    /// Makes a repeated submit answer with the first one's task.
    pub idempotency: Option<Idempotency>,
    /// What ties it to other tasks.
    pub links: Option<Arc<Links>>,
}

/// An idempotency key and the body it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's key; tenants do not share keys.
    pub key: String,
    /// Hash of the parsed body: the same key with another body is refused.
    pub body: [u8; 32],
}

impl NewTask {
    /// When it may start, if the store takes it at `now`.
    pub fn due_at(&self, now: Timestamp) -> Timestamp {
        self.delay.map_or(self.run_at, |delay| now.plus(delay))
    }

    /// What it waits for.
    pub fn dependencies(&self) -> &[Dependency] {
        self.links.as_ref().map_or(&[], |links| &links.dependencies)
    }

    /// Whether it may start as soon as it is stored.
    pub fn is_immediate(&self) -> bool {
        self.delay == Some(Duration::ZERO)
    }

    /// The lease of a task that is granted in the very commit that stores it.
    pub fn handed_off(&self, epoch: u32, granted_at: Timestamp) -> Lease {
        Lease {
            task: self.id,
            epoch,
            run: 1,
            attempt: 1,
            retries: self.retries,
            lane: self.lane.clone(),
            timeout: self.timeout,
            granted_at,
            run_at: self.due_at(granted_at),
            payload: Arc::clone(&self.payload),
            has_parents: false,
            has_children: false,
            renders: self.links.as_ref().is_some_and(|links| links.render),
            parents: None,
        }
    }
}

/// A stored task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// Tenant, queue and type.
    pub lane: Lane,
    /// Where it is in its life.
    pub status: Status,
    /// Its level.
    pub priority: Priority,
    /// When it may start, or could have.
    pub run_at: Timestamp,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its last lease was granted.
    pub granted_at: Option<Timestamp>,
    /// When the handler of its last attempt started; known once its run has ended.
    pub started_at: Option<Timestamp>,
    /// When its run ended.
    pub finished_at: Option<Timestamp>,
    /// Counts submit and replays.
    pub run: u32,
    /// Attempts charged in this run; one that is still running is not.
    pub charged: u32,
    /// How many failed attempts may be followed by another.
    pub retries: u32,
    /// How long attempts wait for each other.
    pub back_off: BackOff,
    /// Raised by every grant, never reset: the fencing token.
    pub epoch: u32,
    /// Leases whose worker died.
    pub losses: u32,
    /// How long its handler may run.
    pub timeout: Option<Duration>,
    /// Who holds or held the last lease; empty once the lease was taken back.
    pub session: Option<SessionId>,
    /// The name that session gave itself.
    pub worker: Option<String>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// JSON text.
    pub payload: Arc<str>,
    /// JSON text, of a success.
    pub result: Option<Arc<str>>,
    /// Of the last failed attempt.
    pub error: Option<Failure>,
    /// How far its attempts have come in this run.
    pub progress: Option<ReportedProgress>,
    /// What ties it to other tasks.
    pub links: Option<Arc<Links>>,
}

impl Task {
    /// How much of a page it takes, about.
    pub fn bytes(&self) -> usize {
        let checkpoint = self.progress.as_ref().and_then(|it| it.progress.checkpoint.as_ref());
        let length = |text: Option<&Arc<str>>| text.map_or(0, |text| text.len());
        self.payload.len() + length(self.result.as_ref()) + length(checkpoint)
    }

    /// The attempt that succeeded, if its run has ended so.
    pub fn success(&self) -> Option<Attempt> {
        let ended_at = self.finished_at.filter(|_| self.status == Status::Success)?;
        Some(Attempt {
            run: self.run,
            attempt: self.charged,
            epoch: self.epoch,
            started_at: self.started_at.or(self.granted_at).unwrap_or(ended_at),
            ended_at,
            worker: self.worker.clone(),
            error: None,
            log: None,
        })
    }

    /// Whether it may be what its workers died of.
    pub fn is_quarantined(&self) -> bool {
        self.losses >= QUARANTINE_LOSSES
    }

    /// The attempt a reader sees: charged ones and the one that runs.
    pub fn attempt(&self) -> u32 {
        self.charged + u32::from(self.status == Status::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_turns_priority_upside_down() {
        for level in 0..=PRIORITY {
            let priority = Priority::new(level).unwrap();
            assert_eq!(Priority::from_rank(priority.rank()), Some(priority));
        }
        assert_eq!(Priority::new(10), None);
        assert_eq!(Priority::from_rank(10), None);
    }

    #[test]
    fn one_level_of_priority_is_worth_a_minute() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let level = |level| Priority::new(level).unwrap();
        assert!(claim_order(at(59), level(9)) < claim_order(at(0), level(8)));
        assert_eq!(claim_order(at(60), level(9)), claim_order(at(0), level(8)));
        assert!(claim_order(at(541), level(9)) > claim_order(at(0), level(0)));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let failure = Failure::new("X", "ä".repeat(ERROR_BYTES));
        assert!(failure.message.len() <= ERROR_BYTES + '…'.len_utf8());
        assert!(failure.message.ends_with("ä…"));
    }
}
