//! What a verb changes about tasks: collected under the lock, then written table by table, in the
//! order in which every transaction takes its locks.

use std::collections::BTreeMap;

use duly_core::error_group::ErrorGroup;
use duly_core::limits::ATTEMPTS;
use duly_core::task::Failure;
use uuid::Uuid;

use super::Scope;
use super::state::{State, each, write};
use crate::postgres::error::Result;
use crate::postgres::range::Range;
use crate::postgres::row;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    states: Vec<State>,
    /// Rows of the due table to remove and to add.
    out: Vec<Due>,
    wait: Vec<Due>,
    leases: Vec<EndedLease>,
    /// Tasks whose batches are told only now that their leases have ended.
    told: Vec<Uuid>,
    attempts: Vec<Attempt>,
    dead: Vec<Dead>,
    revived: Vec<Uuid>,
    revoked: Vec<Revoked>,
}

/// A lease that its holder is to be told is gone.
#[derive(Clone, Copy, Debug)]
struct Revoked {
    session: Uuid,
    task: Uuid,
    epoch: i32,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    range: Range,
    run_at: i64,
    task: Uuid,
}

#[derive(Clone, Copy, Debug)]
struct EndedLease {
    session: Uuid,
    sequence: i64,
    /// Whether its holder has ended it, who has therefore received its batch.
    heard: bool,
}

#[derive(Debug)]
struct Attempt {
    task: Uuid,
    epoch: i32,
    run: i32,
    number: i32,
    started_at: i64,
    session: Option<Uuid>,
    error: String,
    /// Now, if it does not say.
    ended_at: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Dead {
    task: Uuid,
    failed_at: i64,
    lane: i32,
    group: i64,
}

impl Ledger {
    /// The task is to be written as it is now.
    pub(super) fn write(&mut self, state: State) {
        self.states.push(state);
    }

    /// The task waits from now on.
    pub(super) fn wait(&mut self, state: &State) {
        self.wait.push(Due { range: state.range(), run_at: state.run_at, task: state.id });
    }

    /// The task waits no more where it did.
    pub(super) fn stop_waiting(&mut self, state: &State) {
        self.out.push(Due { range: state.range(), run_at: state.run_at, task: state.id });
    }

    /// The task's lease has ended.
    pub(super) fn end_lease(&mut self, state: &State, heard: bool) {
        if let (Some(session), Some(sequence)) = (state.session, state.sequence) {
            self.leases.push(EndedLease { session, sequence, heard });
        }
    }

    /// The task's lease has ended in a transaction of its handler; its batch is told now.
    pub(super) fn tell(&mut self, state: &mut State) {
        state.sequence = state.sequence.map(|sequence| !sequence);
        self.end_lease(state, true);
        self.told.push(state.id);
    }

    /// Keeps a try that is about to end.
    pub(super) fn record(&mut self, state: &State, error: &Failure) {
        self.attempts.push(Attempt {
            task: state.id,
            epoch: state.epoch,
            run: state.run,
            number: row::encode_count(state.charged + 1),
            started_at: state.started_at.or(state.granted_at).unwrap_or_default(),
            session: state.session,
            error: row::encode_failure(error),
            ended_at: None,
        });
    }

    /// Keeps the try by which the task has succeeded, before its row forgets it.
    pub(super) fn record_success(&mut self, state: &State) {
        let started_at = state.start().or(state.granted_at).or(state.finished_at);
        self.attempts.push(Attempt {
            task: state.id,
            epoch: state.epoch,
            run: state.run,
            number: row::encode_count(state.charged),
            started_at: started_at.unwrap_or_default(),
            session: state.session,
            error: row::NO_FAILURE.to_owned(),
            ended_at: state.finished_at,
        });
    }

    /// The task has failed for good.
    pub(super) fn bury(&mut self, state: &State, error: &Failure) {
        self.dead.push(Dead {
            task: state.id,
            failed_at: state.finished_at.unwrap_or_default(),
            lane: state.lane,
            group: ErrorGroup::of(error).to_bits(),
        });
    }

    /// The holder of the task's lease is to be told that it is gone, through whichever node it claims.
    pub(super) fn revoke(&mut self, state: &State) {
        if let Some(session) = state.session {
            self.revoked.push(Revoked { session, task: state.id, epoch: state.epoch });
        }
    }

    /// The task leaves the dead-letter queue.
    pub(super) fn revive(&mut self, state: &State) {
        self.revived.push(state.id);
    }

    /// Writes it all.
    pub(super) async fn close(mut self, scope: &mut Scope<'_>) -> Result<()> {
        self.states.sort_unstable_by_key(|state| state.id);
        write(scope, &self.states).await?;
        self.take_out(scope).await?;
        self.put_in(scope).await?;
        self.end_leases(scope).await?;
        self.keep_attempts(scope).await?;
        self.move_dead(scope).await?;
        self.tell_holders(scope).await
    }

    async fn tell_holders(&self, scope: &mut Scope<'_>) -> Result<()> {
        if self.revoked.is_empty() {
            return Ok(());
        }
        let insert = "/* lease.revoke */ INSERT INTO duly.revocation AS r (session, task, epoch)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[])
            ON CONFLICT (session, task) DO UPDATE SET epoch = excluded.epoch";
        let mut revoked = self.revoked.clone();
        revoked.sort_unstable_by_key(|it| (it.session, it.task));
        let (sessions, tasks) = (each(&revoked, |it| it.session), each(&revoked, |it| it.task));
        scope.execute(insert, &[&sessions, &tasks, &each(&revoked, |it| it.epoch)]).await?;
        scope.wakes.revoke();
        Ok(())
    }

    /// A row that a claim is about to take is left to it: it will find that the task does not wait.
    async fn take_out(&self, scope: &mut Scope<'_>) -> Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let delete = "/* due.remove */ DELETE FROM duly.due WHERE ctid = ANY(ARRAY(
                SELECT d.ctid FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::uuid[])
                           r(lane, rank, run_at, task),
                       LATERAL (SELECT w.ctid FROM duly.due w
                                WHERE w.lane = r.lane AND w.rank = r.rank
                                  AND w.run_at = r.run_at AND w.task = r.task
                                FOR UPDATE SKIP LOCKED) d))";
        let due = columns(&self.out);
        scope.execute(delete, &[&due.0, &due.1, &due.2, &due.3]).await?;
        for due in &self.out {
            scope.wakes.remove(due.range);
        }
        Ok(())
    }

    async fn put_in(&self, scope: &mut Scope<'_>) -> Result<()> {
        if self.wait.is_empty() {
            return Ok(());
        }
        // One that a claim did not get to remove may still be there, and another claim may be about
        // to: to write it is to wait for that, and then to put it in.
        let insert = "/* due.add */ INSERT INTO duly.due (lane, rank, run_at, task)
            SELECT * FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::uuid[])
            ON CONFLICT (lane, rank, run_at, task) DO UPDATE SET task = excluded.task";
        let due = columns(&self.wait);
        scope.execute(insert, &[&due.0, &due.1, &due.2, &due.3]).await?;
        for due in &self.wait {
            scope.wakes.add(due.range, due.run_at);
        }
        Ok(())
    }

    async fn end_leases(&self, scope: &Scope<'_>) -> Result<()> {
        if !self.told.is_empty() {
            let update = "/* task.tell */ UPDATE duly.task SET sequence = ~sequence
                WHERE id = ANY($1) AND sequence < 0";
            scope.execute(update, &[&self.told]).await?;
        }
        for heard in [true, false] {
            let mut batches: BTreeMap<(Uuid, i64), i32> = BTreeMap::new();
            for lease in self.leases.iter().filter(|it| it.heard == heard) {
                *batches.entry((lease.session, lease.sequence)).or_default() += 1;
            }
            end_leases(scope, batches, heard).await?;
        }
        Ok(())
    }

    async fn keep_attempts(&self, scope: &Scope<'_>) -> Result<()> {
        if self.attempts.is_empty() {
            return Ok(());
        }
        let insert = "/* attempt.record */ INSERT INTO duly.attempt
                (task, epoch, run, attempt, started_at, ended_at, session, error)
            SELECT * FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[],
                                 $5::bigint[], $6::bigint[], $7::uuid[], $8::text[])
            ON CONFLICT (task, epoch) DO NOTHING";
        let attempts = &self.attempts;
        scope
            .execute(
                insert,
                &[
                    &each(attempts, |it| it.task),
                    &each(attempts, |it| it.epoch),
                    &each(attempts, |it| it.run),
                    &each(attempts, |it| it.number),
                    &each(attempts, |it| it.started_at),
                    &each(attempts, |it| it.ended_at.unwrap_or(scope.now.millis())),
                    &each(attempts, |it| it.session),
                    &each(attempts, |it| it.error.as_str()),
                ],
            )
            .await?;
        // There are never more attempts than grants.
        let many = |it: &&Attempt| it.epoch.unsigned_abs() as usize > ATTEMPTS;
        for attempt in attempts.iter().filter(many) {
            forget_old(scope, attempt.task).await?;
        }
        Ok(())
    }

    async fn move_dead(&self, scope: &Scope<'_>) -> Result<()> {
        if !self.revived.is_empty() {
            let delete = "/* dlq.remove */ DELETE FROM duly.dlq WHERE task = ANY($1)";
            scope.execute(delete, &[&self.revived]).await?;
        }
        if self.dead.is_empty() {
            return Ok(());
        }
        let insert = "/* dlq.add */ INSERT INTO duly.dlq (task, failed_at, lane, error_group)
            SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::integer[], $4::bigint[])";
        let dead = &self.dead;
        let (tasks, times) = (each(dead, |it| it.task), each(dead, |it| it.failed_at));
        let (lanes, groups) = (each(dead, |it| it.lane), each(dead, |it| it.group));
        scope.execute(insert, &[&tasks, &times, &lanes, &groups]).await?;
        Ok(())
    }
}

/// So many leases of each of these batches have ended.
pub(super) async fn end_leases(
    scope: &Scope<'_>,
    batches: BTreeMap<(Uuid, i64), i32>,
    heard: bool,
) -> Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let (sessions, sequences): (Vec<_>, Vec<_>) = batches.keys().copied().unzip();
    let counts: Vec<_> = batches.into_values().collect();
    let end = "/* lease.end */ SELECT duly.end_batch_leases($1, $2, $3, $4)";
    scope.query(end, &[&sessions, &sequences, &counts, &heard]).await?;
    Ok(())
}

type DueColumns = (Vec<i32>, Vec<i16>, Vec<i64>, Vec<Uuid>);

fn columns(due: &[Due]) -> DueColumns {
    let mut due = due.to_vec();
    due.sort_unstable_by_key(|it| it.task);
    (
        each(&due, |it| it.range.lane),
        each(&due, |it| it.range.rank),
        each(&due, |it| it.run_at),
        each(&due, |it| it.task),
    )
}

/// Drops all but the last attempts of a task, and their logs.
async fn forget_old(scope: &Scope<'_>, task: Uuid) -> Result<()> {
    let delete = "/* attempt.forget_old */ WITH old AS (
            SELECT epoch FROM duly.attempt WHERE task = $1 ORDER BY epoch DESC OFFSET $2 LIMIT 1
        ), logs AS (
            DELETE FROM duly.log USING old WHERE log.task = $1 AND log.epoch <= old.epoch
        )
        DELETE FROM duly.attempt USING old WHERE attempt.task = $1 AND attempt.epoch <= old.epoch";
    let kept = i64::try_from(ATTEMPTS).expect("a small number");
    scope.execute(delete, &[&task, &kept]).await?;
    Ok(())
}
