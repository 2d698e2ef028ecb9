//! The dead-letter queue: failed tasks that wait for a person.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::error_group::ErrorGroup;
use crate::filter::Filter;
use crate::id::TaskId;
use crate::name::{QueueName, TenantName, TypeName};
use crate::task::{Failure, Task};
use crate::time::Timestamp;

/// A place in the list of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadPosition {
    /// When the task failed.
    pub failed_at: Timestamp,
    /// Which of those that failed then.
    pub task: TaskId,
}

/// Which page of a tenant's dead letters.
#[derive(Clone, Debug)]
pub struct ListDead {
    /// Whose.
    pub tenant: TenantName,
    /// Which; its times are those of the failures.
    pub filter: Filter,
    /// Only those below this place.
    pub before: Option<DeadPosition>,
    /// How many.
    pub limit: u32,
}

/// A page of dead letters.
#[derive(Clone, Debug)]
pub struct DeadList {
    /// The tasks, last failure first.
    pub tasks: Vec<Task>,
    /// Where the next page starts, if there is one.
    pub next_before: Option<DeadPosition>,
    /// How many of the tenant's dead letters were looked at.
    pub scanned: u32,
    /// Whether it ended because it had looked at as many as it may, although it was not full.
    pub partial: bool,
}

/// Which dead letters to count.
#[derive(Clone, Debug)]
pub struct GroupDead {
    /// Whose.
    pub tenant: TenantName,
    /// Which; its times are those of the failures.
    pub filter: Filter,
    /// How many groups at the most.
    pub limit: u32,
}

/// Dead letters of one queue and type that failed alike.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadGroup {
    /// What they have in common.
    pub group: ErrorGroup,
    /// Their queue.
    pub queue: QueueName,
    /// Their type.
    pub task_type: TypeName,
    /// How many there are.
    pub count: u64,
    /// When the first of them failed.
    pub first_failed_at: Timestamp,
    /// When the last of them failed.
    pub last_failed_at: Timestamp,
    /// The one that failed last.
    pub sample: TaskId,
    /// Its error.
    pub error: Failure,
}

/// The groups of a tenant's dead letters.
#[derive(Clone, Debug)]
pub struct DeadGroups {
    /// The groups, the largest first.
    pub groups: Vec<DeadGroup>,
    /// How many of the tenant's dead letters were looked at, the last failure first.
    pub scanned: u32,
    /// Whether it ended although older ones were left: what is counted are the later failures.
    pub partial: bool,
}

/// The dead-letter queue. A task enters it as it turns FAILED and leaves it by replay, deletion or
/// retention.
#[async_trait]
pub trait DeadLetters {
    /// One page of dead letters; about [`crate::limits::PAGE_BYTES`] at the most, but at least
    /// one task. It looks at [`crate::limits::SCAN_ROWS`] at the most, and at fewer where a term
    /// is dear to look at, and then says where to go on, perhaps with nothing found.
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList>;

    /// Dead letters by queue, type and error, the largest group first. It looks at
    /// [`crate::limits::DEAD_GROUP_ROWS`] at the most, the last failures, and at fewer where a
    /// term is dear to look at.
    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups>;
}
