//! The only writer of tasks. Every change of a task's state is made by one of seven hooks, each in a
//! file of its own, and by nothing else: a test of the house finds any other writer. The verbs decide
//! what happens to a task and call a hook, which writes it.
//!
//! | hook       | transition                                                           |
//! |------------|----------------------------------------------------------------------|
//! | [`stored`]   | a new task: PENDING, BLOCKED, or RUNNING where it is handed off     |
//! | [`blocked`]  | BLOCKED → PENDING                                                   |
//! | [`granted`]  | PENDING → RUNNING                                                   |
//! | [`waiting`]  | RUNNING → PENDING: a retry, a release or a loss                     |
//! | [`ended`]    | BLOCKED, PENDING or RUNNING → SUCCESS, FAILED or CANCELLED          |
//! | [`replayed`] | SUCCESS, FAILED or CANCELLED → PENDING or BLOCKED, as the next run  |
//! | [`deleted`]  | SUCCESS, FAILED or CANCELLED → gone                                 |
//!
//! What belongs to a transition is written with it: the row of a waiting task in `due`, that of a
//! failed one in `dlq`, the record of an attempt. What depends on transitions (workflows, events,
//! limits) attaches here, once. A hook knows the task, the new state and whether there is a result or
//! an error. It knows the lane too, except for outcomes: nothing of the task's row is read on that
//! path, so a feature that needs the lane reads it, for the tasks that concern it alone.
//!
//! A hook runs in the transaction of the verb that calls it, which other verbs share. The transaction
//! may be rolled back and run again, so a hook acts through its [`Scope`] alone.

mod attempts;
pub(super) mod blocked;
pub(super) mod deleted;
pub(super) mod ended;
pub(super) mod granted;
pub(super) mod replayed;
pub(super) mod settled;
pub(super) mod stored;
pub(super) mod waiting;

use duly_core::id::SessionId;

use super::index::grants::Granted;
use super::verb::Scope;

/// A lease and its holder. Statements change a running task only under exactly this lease: the same
/// task, epoch and session, and still RUNNING.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) session: SessionId,
    pub(super) lease: Granted,
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Its holder says so. The task remembers the session, so that a repeated outcome is recognised.
    Holder,
    /// The store takes it back. The task forgets the session, whose outcome is refused from now on.
    Store,
}
