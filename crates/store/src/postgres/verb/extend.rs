//! Extend: give leases more time.

use duly_core::ports::store::{ExtendLeases, Extended};
use foldhash::HashMap;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::fields::{self, MovedDeadline};
use crate::postgres::task_state::state::{TaskState, each};

/// A lease whose deadline was moved, and its batch.
struct Moved {
    lease: MovedDeadline,
    sequence: Option<i64>,
}

impl Verb for ExtendLeases {
    type Answer = Vec<Extended>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Extended>> {
        let session = row::session_uuid(self.session);
        let ids = each(&self.leases, |lease| row::uuid(lease.task));
        let states = TaskState::lock(scope, &ids).await?;
        let mut moved: HashMap<Uuid, Moved> = HashMap::default();
        let mut answers = Vec::with_capacity(ids.len());
        for (lease, task) in self.leases.iter().zip(ids) {
            let epoch = row::encode_count(lease.epoch);
            answers.push(match states.get(&task) {
                None => Extended::Unknown,
                Some(it) if scope.is_foreign(self.session, it.lane).await? => Extended::Unknown,
                Some(it) if !it.is_held(session, epoch) => Extended::LeaseLost,
                Some(TaskState { sequence, .. }) => {
                    let deadline = scope.now.plus(lease.by);
                    let lease = MovedDeadline { task, epoch, deadline: deadline.millis() };
                    moved.insert(task, Moved { lease, sequence: *sequence });
                    Extended::Done { deadline }
                }
            });
        }
        let mut moved: Vec<_> = moved.into_values().collect();
        moved.sort_unstable_by_key(|it| it.lease.task);
        write(scope, session, moved).await?;
        Ok(answers)
    }
}

async fn write(scope: &Scope<'_>, session: Uuid, moved: Vec<Moved>) -> Result<()> {
    if moved.is_empty() {
        return Ok(());
    }
    let (leases, sequences): (Vec<_>, Vec<_>) =
        moved.into_iter().map(|it| (it.lease, it.sequence)).unzip();
    fields::move_deadlines(scope, session, &leases).await?;
    // A batch is looked at when the first of its leases is overdue.
    let update = "/* extend.batch */ UPDATE duly.grant_log g SET deadline = m.deadline
        FROM (SELECT sequence, min(deadline) AS deadline
              FROM unnest($2::bigint[], $3::bigint[]) u(sequence, deadline) GROUP BY 1) m
        WHERE g.session = $1 AND g.sequence = m.sequence AND g.deadline > m.deadline";
    let deadlines = each(&leases, |it| it.deadline);
    scope.execute(update, &[&session, &sequences, &deadlines]).await?;
    Ok(())
}
