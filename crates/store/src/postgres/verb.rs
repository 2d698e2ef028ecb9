//! What runs in a transaction: one file per verb. A verb may be run again after a rollback, so it
//! changes nothing but the database; what this node must know is applied after the commit.
//!
//! Every transaction takes its locks in the same order: session, tasks by their ids, due rows, grants,
//! the rest, workflows by their ids. Children of tasks that end are locked after these. If two collide all the same, the server rolls one back, and it is tried again.

pub(super) mod api_keys;
mod bulk;
mod cancel;
pub(super) mod cancel_workflow;
pub(super) mod cascade;
mod control;
pub(super) mod delete;
mod edit;
mod exchange;
pub(super) mod expire;
mod extend;
mod finish;
mod insert;
mod items;
mod keys;
mod log;
pub(super) mod pause;
mod progress;
mod put_settings;
mod put_tenant;
mod reap;
mod replay;
mod report;
mod retry;
pub(super) mod run_again;
mod schedule;
mod session;
pub(super) mod sinks;
mod slots;
mod submit;
pub(super) mod submit_workflow;
mod take_back;
mod then;
mod ties;
mod workflow_key;

use std::future::Future;

use deadpool_postgres::{GenericClient, Transaction};
use duly_core::id::SessionId;
use duly_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::audit::Watched;
use super::error::{Fault, Result};
use super::heads::{self, Look};
use super::outbox::Told;
use super::range::{LaneId, Range};
use super::wakes::Wakes;
use super::{PostgresStore, row};
use crate::audited::Subject;

/// How often a transaction is tried that collides with others.
const TRIES: u32 = 5;

/// What a verb works on.
pub(super) struct Scope<'a> {
    pub(super) store: &'a PostgresStore,
    transaction: Transaction<'a>,
    /// The store's time; the same for everything in the transaction.
    pub(super) now: Timestamp,
    /// What changes in the due table, for after the commit.
    pub(super) wakes: Wakes,
    /// What there is to tell of the changes so far.
    pub(super) told: Told,
    /// How many tasks the order has told to run again, where the audit log is to say so.
    pub(super) counted: u64,
}

/// One thing to do in a transaction.
pub(super) trait Verb: Sync {
    type Answer: Send;

    fn apply(&self, scope: &mut Scope<'_>) -> impl Future<Output = Result<Self::Answer>> + Send;

    /// What the audit log is to tell of if a user orders this.
    fn audited(&self) -> Vec<Subject> {
        Vec::new()
    }
}

impl<'a> Scope<'a> {
    /// Rows of a statement. Its plan is kept with the connection.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.query(&statement, parameters).await?)
    }

    /// How many rows a statement has changed.
    pub(super) async fn execute(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64> {
        let statement = self.transaction.prepare_cached(statement).await?;
        Ok(self.transaction.execute(&statement, parameters).await?)
    }

    /// For what reads beside the verbs.
    pub(super) fn transaction(&self) -> &Transaction<'a> {
        &self.transaction
    }

    /// Whether a session may not even know of tasks in this lane.
    pub(super) async fn is_foreign(&self, session: SessionId, lane: LaneId) -> Result<bool> {
        let session = self.store.sessions.fetch(&self.transaction, session).await?;
        let tenant = session.as_ref().and_then(|session| session.opened.tenant.as_ref());
        let Some(tenant) = tenant else { return Ok(false) };
        Ok(*tenant != self.store.lanes.fetch(&self.transaction, lane).await?.tenant)
    }

    /// Where the ranges start now out of which something was taken.
    async fn settle(&mut self) -> Result<Vec<Look>> {
        let ranges = self.wakes.unsettled();
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let lanes: Vec<_> = ranges.iter().map(|range| range.lane).collect();
        let ranks: Vec<_> = ranges.iter().map(|range| range.rank).collect();
        let after = vec![i64::MIN; ranges.len()];
        let mut looks = Vec::with_capacity(ranges.len());
        for row in self.query(heads::SOME, &[&lanes, &ranks, &after]).await? {
            let range = Range { lane: row.try_get(0)?, rank: row.try_get(1)? };
            looks.push(Look { range, since: i64::MIN, head: row.try_get(2)? });
            self.wakes.seen(range);
        }
        Ok(looks)
    }
}

impl PostgresStore {
    /// Runs a verb in a transaction of its own.
    pub(super) async fn run<V: Verb>(&self, verb: &V) -> Result<V::Answer> {
        self.retry_on_collision(|| self.run_once(verb)).await
    }

    /// Tries a transaction again if it collided with another.
    async fn retry_on_collision<T, F>(&self, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut tries = 1;
        loop {
            match attempt().await {
                Err(fault) if fault.is_collision() && tries < TRIES => tries += 1,
                answer => return self.server_errors.note(self.with_cause(answer).await),
            }
        }
    }

    /// A statement that the server does not understand may mean that a newer node changed the schema.
    async fn with_cause<T>(&self, answer: Result<T>) -> Result<T> {
        if answer.as_ref().is_err_and(Fault::is_misunderstood) {
            drop(self.pool.look_at_schema().await?);
        }
        answer
    }

    async fn run_once<V: Verb>(&self, verb: &V) -> Result<V::Answer> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let begin = "/* begin */ SELECT duly.now(), (SELECT kinds FROM duly.wanted_kinds LIMIT 1)";
        let begin = transaction.prepare_cached(begin).await?;
        let found = transaction.query_one(&begin, &[]).await?;
        let (now, told) = (row::instant(found.try_get(0)?), Told::new(found.try_get(1)?));
        let wakes = Wakes::default();
        let mut scope = Scope { store: self, transaction, now, wakes, told, counted: 0 };
        let answer = match &self.author {
            None => verb.apply(&mut scope).await?,
            Some(author) => {
                let watched = Watched::begin(&scope, verb.audited()).await?;
                let answer = verb.apply(&mut scope).await?;
                watched.write_changes(&scope, author).await?;
                answer
            }
        };
        scope.write_events().await?;
        let moment = self.heads.moment();
        let looks = scope.settle().await?;
        let committing = Committing { store: self, wakes: Some(scope.wakes) };
        scope.transaction.commit().await?;
        drop(committing);
        self.heads.settle(moment, looks);
        Ok(answer)
    }
}

/// What is about to be committed. If the caller goes away meanwhile, it is unknown whether it is; it is
/// made known all the same, since a wrong belief costs a read at most.
pub(super) struct Committing<'a> {
    store: &'a PostgresStore,
    wakes: Option<Wakes>,
}

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.wakes.take().into_iter().for_each(|wakes| self.store.wake(wakes));
    }
}
