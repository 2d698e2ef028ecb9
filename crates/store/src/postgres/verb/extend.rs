//! Extend: give leases more time.

use duly_core::ports::store::{ExtendLeases, Extended};
use foldhash::HashMap;
use uuid::Uuid;

use super::state::{State, each};
use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::row;

/// A deadline that was moved.
struct Moved {
    task: Uuid,
    epoch: i32,
    sequence: Option<i64>,
    deadline: i64,
}

impl Verb for ExtendLeases {
    type Answer = Vec<Extended>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Extended>> {
        let session = row::session_uuid(self.session);
        let ids = each(&self.leases, |lease| row::uuid(lease.task));
        let states = State::lock(scope, &ids).await?;
        let mut moved: HashMap<Uuid, Moved> = HashMap::default();
        let mut answers = Vec::with_capacity(ids.len());
        for (lease, task) in self.leases.iter().zip(ids) {
            let epoch = row::encode_count(lease.epoch);
            answers.push(match states.get(&task) {
                None => Extended::Unknown,
                Some(it) if scope.is_foreign(self.session, it.lane).await? => Extended::Unknown,
                Some(it) if !it.is_held(session, epoch) => Extended::LeaseLost,
                Some(State { sequence, .. }) => {
                    let deadline = scope.now.plus(lease.by);
                    let (sequence, at) = (*sequence, deadline.millis());
                    moved.insert(task, Moved { task, epoch, sequence, deadline: at });
                    Extended::Done { deadline }
                }
            });
        }
        let mut moved: Vec<_> = moved.into_values().collect();
        moved.sort_unstable_by_key(|it| it.task);
        write(scope, session, &moved).await?;
        Ok(answers)
    }
}

async fn write(scope: &Scope<'_>, session: Uuid, moved: &[Moved]) -> Result<()> {
    if moved.is_empty() {
        return Ok(());
    }
    let update = "/* extend */ UPDATE duly.task t
        SET deadline_or_start = ($4::bigint[])[width_bucket(t.id, $2)]
        WHERE t.id = ANY($2::uuid[]) AND t.epoch = ($3::integer[])[width_bucket(t.id, $2)]
          AND t.session = $1 AND t.status = 2";
    let (tasks, epochs) = (each(moved, |it| it.task), each(moved, |it| it.epoch));
    let deadlines = each(moved, |it| it.deadline);
    scope.execute(update, &[&session, &tasks, &epochs, &deadlines]).await?;
    // A batch is looked at when the first of its leases is overdue.
    let update = "/* extend.batch */ UPDATE duly.grant_log g SET deadline = m.deadline
        FROM (SELECT sequence, min(deadline) AS deadline
              FROM unnest($2::bigint[], $3::bigint[]) u(sequence, deadline) GROUP BY 1) m
        WHERE g.session = $1 AND g.sequence = m.sequence AND g.deadline > m.deadline";
    let sequences = each(moved, |it| it.sequence);
    scope.execute(update, &[&session, &sequences, &deadlines]).await?;
    Ok(())
}
