//! What the writer can be asked to do, one file per verb. A verb runs inside a transaction that
//! it shares with whatever else was waiting, and may be run again after a rollback.

pub(super) mod bulk;
pub(super) mod cancel;
pub(super) mod cascade;
pub(super) mod claim;
pub(super) mod control;
mod delete;
pub(super) mod edit;
pub(super) mod exchange;
pub(super) mod expire;
pub(super) mod extend;
pub(super) mod finish;
pub(super) mod keys;
pub(super) mod pause;
pub(super) mod probe;
pub(super) mod put_settings;
pub(super) mod put_tenant;
pub(super) mod reap;
pub(super) mod reclaim;
pub(super) mod replay;
pub(super) mod report;
pub(super) mod retry;
mod schedule;
pub(super) mod session;
pub(super) mod sinks;
pub(super) mod slots;
pub(super) mod submit;
pub(super) mod wakes;
pub(super) mod workflow;

use duly_core::audit::Author;
use duly_core::ports::store::{self, Rules};
use duly_core::time::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::wakes::Wakes;
use super::audit::Watched;
use super::error::Result;
use super::index::Index;
use super::index::heads::Range;
use super::outbox::Events;
use super::task_state::settled::{EndedLinked, settle};
use crate::audited::Subject;

/// What a verb works on.
pub(super) struct Scope<'a> {
    pub(super) connection: &'a Connection,
    pub(super) index: &'a mut Index,
    pub(super) now: Timestamp,
    pub(super) rules: Rules,
    /// What to hint at after the commit.
    pub(super) wakes: &'a mut Wakes,
    /// What the transaction has to tell.
    pub(super) events: &'a Events,
    /// How many tasks the order has told to run again, where the audit log is to say so.
    pub(super) counted: u64,
    /// What has ended in this call and is tied to other tasks; see [`settle`].
    pub(super) ended: Vec<EndedLinked>,
    #[cfg(feature = "planted-bugs")]
    pub(super) bug: Option<crate::planted::PlantedBug>,
    /// [`crate::planted::PlantedBug::AuditOutsideCommit`]: what is written after the commit.
    #[cfg(feature = "planted-bugs")]
    pub(super) late_changes: Vec<(Author, crate::audited::Change)>,
}

impl Scope<'_> {
    /// Puts a task into the due table. A task in a paused queue wakes no worker: resuming the queue does.
    pub(super) fn wait(&mut self, range: Range, run_at: i64, task: &[u8; 16]) -> Result<()> {
        self.connection
            .prepare_cached(
                "/* due.add */ INSERT INTO due (lane, rank, run_at, task) VALUES (?, ?, ?, ?)",
            )?
            .execute(rusqlite::params![range.lane, range.rank, run_at, task])?;
        self.index.heads.add(range, run_at);
        if !self.index.lanes.is_held_back(range.lane) {
            self.wakes.lane(range.lane, Timestamp::clamped(run_at));
        }
        Ok(())
    }

    /// The cascade has something to cancel.
    pub(super) fn cascade(&mut self) {
        self.hint_at(self.now);
    }

    /// Any worker may find something to claim from this time on.
    pub(super) fn hint_at(&mut self, due: Timestamp) {
        self.wakes.anywhere(due);
    }
}

/// One thing to do in a transaction.
pub(super) trait Verb: Send + 'static {
    type Answer: Send + 'static;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Self::Answer>;

    /// What the audit log is to tell of if a user orders this.
    fn audited(&self) -> Vec<Subject> {
        Vec::new()
    }
}

/// A verb whose caller waits for its answer.
pub(super) trait Job: Send {
    /// Runs the verb and keeps the answer.
    fn run(&mut self, scope: &mut Scope<'_>) -> Result<()>;

    /// Sends the answer, or why there is none. The caller may have gone; what was committed
    /// stays committed.
    fn reply(self: Box<Self>, failure: Option<store::Error>);
}

pub(super) struct Call<V: Verb> {
    pub(super) verb: V,
    /// The user whose order it is.
    pub(super) author: Option<Author>,
    pub(super) answer: Option<V::Answer>,
    pub(super) caller: oneshot::Sender<store::Result<V::Answer>>,
}

impl<V: Verb> Job for Call<V> {
    fn run(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        let Some(author) = &self.author else {
            self.answer = Some(self.verb.apply(scope)?);
            return settle(scope);
        };
        let watched = Watched::begin(scope, self.verb.audited())?;
        self.answer = Some(self.verb.apply(scope)?);
        settle(scope)?;
        watched.write_changes(scope, author)
    }

    fn reply(self: Box<Self>, failure: Option<store::Error>) {
        let answer = match failure {
            Some(error) => Err(error),
            None => Ok(self.answer.expect("a job is answered after it ran")),
        };
        drop(self.caller.send(answer));
    }
}
