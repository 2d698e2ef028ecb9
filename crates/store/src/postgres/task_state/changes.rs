//! What a verb changes about tasks: collected under their locks, then written table by table, in the
//! order in which every transaction takes its locks.

use duly_core::event::EventKind;
use duly_core::state::{Event, Status};
use duly_core::task::Failure;

use super::attempts::{self, Attempt};
use super::blocked::{self, BlockedRow};
use super::dead_letters::{self, DeadLetter};
use super::due::{self, DueRow};
use super::leases::{self, EndedLease, Revocation};
use super::settle;
use super::state::{TaskState, write_rows};
use crate::postgres::error::Result;
use crate::postgres::outbox::ToldTask;
use crate::postgres::verb::Scope;

/// The changes of one transaction.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Changes {
    /// Rows of tasks to write.
    states: Vec<TaskState>,
    due_removed: Vec<DueRow>,
    due_added: Vec<DueRow>,
    blocked_removed: Vec<BlockedRow>,
    blocked_added: Vec<BlockedRow>,
    /// Tasks that have ended and are tied to others.
    settled: Vec<uuid::Uuid>,
    /// The workflow of each task that is open again.
    reopened: Vec<uuid::Uuid>,
    ended_leases: Vec<EndedLease>,
    /// Tasks that their handlers' transactions have ended, and whose batches learn of it now.
    acknowledged: Vec<uuid::Uuid>,
    attempts: Vec<Attempt>,
    dead_letters_deleted: Vec<uuid::Uuid>,
    dead_letters_inserted: Vec<DeadLetter>,
    revocations: Vec<Revocation>,
    /// What there is to tell, if a sink wants it.
    told: Vec<(EventKind, ToldTask)>,
}

impl Changes {
    /// Hook `waiting`: the task is PENDING again, or stays so with another run time or rank. To move a
    /// waiting task, call [`Self::stop_waiting`] first, for where it was.
    pub(in crate::postgres) fn waiting(&mut self, state: &TaskState) {
        let kind = match state.event {
            Some(Event::Retry) => Some(EventKind::TaskRetried),
            Some(Event::Release) => Some(EventKind::TaskReleased),
            Some(Event::Lose) => Some(EventKind::TaskLost),
            _ => None,
        };
        self.told.extend(kind.map(|kind| (kind, state.into())));
        self.due_added.push(DueRow::of(state));
        self.states.push(state.clone());
    }

    /// Hook `ended`: the run of the task has ended. If it FAILED, `failure` says why, and the task
    /// becomes a dead letter.
    pub(in crate::postgres) fn ended(&mut self, state: &TaskState, failure: Option<&Failure>) {
        if state.status == Status::Failed {
            let failure = failure.expect("a task fails for a reason");
            self.dead_letters_inserted.push(DeadLetter::of(state, failure));
        }
        let kind = match state.status {
            Status::Success => EventKind::TaskSucceeded,
            Status::Failed => EventKind::TaskFailed,
            _ => EventKind::TaskCancelled,
        };
        self.told.push((kind, state.into()));
        self.settled.extend(state.links.map(|_| state.id));
        self.states.push(state.clone());
    }

    /// Hook `replayed`: the next run of a task that had ended begins. It is PENDING now, or BLOCKED if
    /// edges to it are open.
    pub(in crate::postgres) fn replayed(&mut self, state: &TaskState, open_edges: i32) {
        if state.status_before() == Status::Failed {
            self.dead_letters_deleted.push(state.id);
        }
        if state.status == Status::Blocked {
            self.blocked_added.push(BlockedRow::of(state, open_edges, Some(0)));
        } else {
            self.due_added.push(DueRow::of(state));
        }
        self.told.push((EventKind::TaskReplayed, state.into()));
        self.reopened.extend(state.workflow);
        self.states.push(state.clone());
    }

    /// A user has changed the task, which waits.
    pub(in crate::postgres) fn edited(&mut self, state: &TaskState) {
        self.told.push((EventKind::TaskEdited, state.into()));
    }

    /// A BLOCKED task changes and stays BLOCKED. What its row among the blocked ones says is left alone.
    pub(in crate::postgres) fn stays_blocked(&mut self, state: &TaskState) {
        self.states.push(state.clone());
    }

    /// The task is no longer due where it was, or no longer BLOCKED.
    pub(in crate::postgres) fn stop_waiting(&mut self, state: &TaskState) {
        if state.status == Status::Blocked {
            self.blocked_removed.push(BlockedRow::of(state, 0, None));
        } else {
            self.due_removed.push(DueRow::of(state));
        }
    }

    /// The task's lease has ended; `acknowledged` if its holder has reported that, and so has received
    /// its batch.
    pub(in crate::postgres) fn end_lease(&mut self, state: &TaskState, acknowledged: bool) {
        self.ended_leases.extend(EndedLease::of(state, acknowledged));
    }

    /// The task's handler has ended it in its own transaction; its batch learns of it now.
    pub(in crate::postgres) fn acknowledge(&mut self, state: &mut TaskState) {
        state.sequence = state.sequence.map(|sequence| !sequence);
        self.end_lease(state, true);
        self.acknowledged.push(state.id);
    }

    /// Keeps an attempt that is about to end with an error.
    pub(in crate::postgres) fn record_attempt(&mut self, state: &TaskState, error: &Failure) {
        self.attempts.push(Attempt::failed(state, error));
    }

    /// Keeps the attempt by which the task has succeeded, before its row forgets it.
    pub(in crate::postgres) fn record_success(&mut self, state: &TaskState) {
        self.attempts.push(Attempt::succeeded(state));
    }

    /// The holder of the task's lease is to be notified that it is gone, by the node it claims through.
    pub(in crate::postgres) fn revoke(&mut self, state: &TaskState) {
        self.revocations.extend(Revocation::of(state));
    }

    /// Writes all of it.
    pub(in crate::postgres) async fn write(mut self, scope: &mut Scope<'_>) -> Result<()> {
        scope.told.tell_all(std::mem::take(&mut self.told));
        self.states.sort_unstable_by_key(|state| state.id);
        write_rows(scope, &self.states).await?;
        blocked::remove(scope, &self.blocked_removed).await?;
        blocked::add(scope, &self.blocked_added).await?;
        due::remove(scope, &self.due_removed).await?;
        due::add(scope, &self.due_added).await?;
        leases::acknowledge(scope, &self.acknowledged).await?;
        leases::end(scope, &self.ended_leases).await?;
        attempts::record(scope, &self.attempts).await?;
        dead_letters::delete(scope, &self.dead_letters_deleted).await?;
        dead_letters::insert(scope, &self.dead_letters_inserted).await?;
        settle::reopen(scope, self.reopened).await?;
        // Last, since it reads what was written before.
        settle::settle(scope, &self.settled).await?;
        leases::revoke(scope, self.revocations).await
    }
}
