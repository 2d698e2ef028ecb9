//! The one thread that writes. It takes everything that is waiting, runs it in one transaction,
//! syncs once and answers all; the sync in progress is the batching window, so a lone caller
//! never waits for a timer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use duly_core::ports::clock::Clock;
use duly_core::ports::store::{self, Hint, Rules};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Notify;

use super::backup::CopyOrder;
use super::checkpoint::{self, Checkpointer};
use super::error::{Fault, Result};
use super::index::Index;
use super::outbox::Events;
use super::verb::wakes::Wakes;
use super::verb::{Job, Scope};
use crate::hints::Hints;

/// Commands that share one commit at the most.
const GROUP: usize = 1000;

/// Why the store takes no writes at the moment, if it does not.
pub(super) type Health = Arc<Mutex<Option<String>>>;

/// What the thread can be asked to do.
pub(super) enum Command {
    /// Something that shares a transaction with whatever else waits.
    Run(Box<dyn Job>),
    /// A copy of the file, made between transactions.
    Copy(CopyOrder),
}

pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) committer: Committer,
}

/// Runs groups of jobs on the writer's connection.
pub(super) struct Committer {
    pub(super) index: Index,
    /// Whether the index must be read again before it is used.
    pub(super) stale: bool,
    pub(super) clock: Arc<dyn Clock>,
    /// What the store was opened with; the settings may say otherwise.
    pub(super) rules: Rules,
    pub(super) hints: Arc<Hints>,
    pub(super) events_written: Arc<Notify>,
    pub(super) health: Health,
    pub(super) checkpointer: Checkpointer,
    #[cfg(feature = "planted-bugs")]
    pub(super) planted: super::planted::Planted,
}

impl Writer {
    /// Works until every sender is gone.
    pub(super) fn run(mut self, inbox: &Receiver<Command>) {
        let mut tidy_in = Some(checkpoint::IDLE);
        loop {
            let first = match tidy_in {
                Some(pause) => inbox.recv_timeout(pause),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match first {
                Ok(command) => {
                    let Waiting { jobs, copies } = Waiting::take(Some(command), inbox);
                    self.committer.work(&self.connection, jobs);
                    for order in copies {
                        order.carry_out(&self.connection, &mut self.committer, inbox);
                    }
                    tidy_in = Some(checkpoint::IDLE);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let tidy = self.committer.checkpointer.when_idle(&self.connection);
                    // While a reader is in the way it is tried less and less often.
                    tidy_in = tidy_in
                        .filter(|_| !tidy)
                        .map(|pause| (pause * 2).min(checkpoint::PATIENCE));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.committer.checkpointer.move_rest(&self.connection);
        self.committer.checkpointer.stop();
    }
}

impl Committer {
    /// Runs a group in one transaction and answers every job in it.
    pub(super) fn work(&mut self, connection: &Connection, mut group: Vec<Box<dyn Job>>) {
        if group.is_empty() {
            return;
        }
        match self.transact(connection, &mut group) {
            Ok(()) => group.into_iter().for_each(|job| job.reply(None)),
            Err(fault) if group.len() == 1 || fault.is_environment() => self.refuse(group, fault),
            // One of them spoils the transaction: alone, it spoils only its own.
            Err(_) => group.into_iter().for_each(|job| self.work(connection, vec![job])),
        }
    }

    fn transact(&mut self, connection: &Connection, group: &mut [Box<dyn Job>]) -> Result<()> {
        let before = connection.total_changes();
        let database = Path::new(connection.path().unwrap_or_default());
        let outcome = self.transact_or_panic(connection, group);
        let outcome = outcome.map_err(|fault| fault.check_disk(database));
        match &outcome {
            Ok(hint) => {
                // A transaction that wrote nothing says nothing about the disk.
                if connection.total_changes() > before {
                    *self.health.lock() = None;
                }
                if let Some(hint) = hint {
                    self.hints.send(hint.clone());
                }
                self.checkpointer.after_commit(connection);
            }
            Err(_) => {
                self.stale = true;
                if !connection.is_autocommit() {
                    drop(connection.execute_batch("ROLLBACK"));
                }
            }
        }
        outcome.map(|_| ())
    }

    /// A bug in one verb must not end the thread that everybody needs.
    fn transact_or_panic(
        &mut self,
        connection: &Connection,
        group: &mut [Box<dyn Job>],
    ) -> Result<Option<Hint>> {
        let attempt = AssertUnwindSafe(|| self.try_transact(connection, group));
        catch_unwind(attempt).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref().map(|text: &&str| (*text).to_owned()));
            Err(Fault::Panic(text.unwrap_or_default()))
        })
    }

    fn try_transact(
        &mut self,
        connection: &Connection,
        group: &mut [Box<dyn Job>],
    ) -> Result<Option<Hint>> {
        if self.stale {
            self.index.load(connection, self.clock.now())?;
            self.stale = false;
        }
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut wakes = Wakes::default();
        let events = Events::default();
        #[cfg(feature = "planted-bugs")]
        let mut late_changes = Vec::new();
        for job in group {
            let loss_limit = self.index.settings.loss_limit.unwrap_or(self.rules.loss_limit);
            let mut scope = Scope {
                connection,
                index: &mut self.index,
                now: self.clock.now(),
                rules: Rules { loss_limit },
                wakes: &mut wakes,
                events: &events,
                counted: 0,
                ended: Vec::new(),
                #[cfg(feature = "planted-bugs")]
                bug: self.planted.get().copied(),
                #[cfg(feature = "planted-bugs")]
                late_changes: Vec::new(),
            };
            job.run(&mut scope)?;
            #[cfg(feature = "planted-bugs")]
            late_changes.append(&mut scope.late_changes);
        }
        let told = events.write(connection, self.clock.now())?;
        let committed = connection.prepare_cached("COMMIT")?.execute([]);
        #[cfg(feature = "planted-bugs")]
        if matches!(&committed, Err(error) if super::planted::swallows(&self.planted, error)) {
            self.stale = true;
            drop(connection.execute_batch("ROLLBACK"));
            return Ok(wakes.hint(&self.index.lanes));
        }
        committed?;
        #[cfg(feature = "planted-bugs")]
        for (author, change) in late_changes {
            drop(super::audit::write(connection, self.clock.now(), &author, &change));
        }
        if told {
            self.events_written.notify_one();
        }
        Ok(wakes.hint(&self.index.lanes))
    }

    fn refuse(&self, group: Vec<Box<dyn Job>>, fault: Fault) {
        let error = store::Error::from(fault);
        if let store::Error::Unavailable { reason } = &error {
            let known = self.health.lock().replace(reason.clone());
            if known.is_none() {
                tracing::error!(reason, "the store takes no writes");
            }
            for job in group {
                job.reply(Some(store::Error::Unavailable { reason: reason.clone() }));
            }
            return;
        }
        // Only a group of one gets here with an error that cannot be copied.
        for (job, error) in group.into_iter().zip(std::iter::once(error)) {
            job.reply(Some(error));
        }
    }
}

/// What waits to be done.
pub(super) struct Waiting {
    pub(super) jobs: Vec<Box<dyn Job>>,
    pub(super) copies: Vec<CopyOrder>,
}

impl Waiting {
    /// Takes what waits along with the first command, if there is one; as much as may share a commit.
    pub(super) fn take(first: Option<Command>, inbox: &Receiver<Command>) -> Self {
        let mut waiting = Self { jobs: Vec::new(), copies: Vec::new() };
        let mut next = first.or_else(|| inbox.try_recv().ok());
        while let Some(command) = next {
            match command {
                Command::Run(job) => waiting.jobs.push(job),
                Command::Copy(order) => waiting.copies.push(order),
            }
            next = (waiting.jobs.len() < GROUP).then(|| inbox.try_recv().ok()).flatten();
        }
        waiting
    }
}
