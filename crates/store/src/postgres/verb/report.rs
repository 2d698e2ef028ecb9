//! What attempts report while they run. Nothing is written but for leases that live, whose tasks are
//! locked until the commit.

use duly_core::event::EventKind;
use duly_core::ports::store::{Report, ReportItem, Reported};
use foldhash::HashMap;
use uuid::Uuid;

use super::log::{self, Logged};
use super::{Scope, Verb, progress};
use crate::postgres::error::Result;
use crate::postgres::outbox::ToldTask;
use crate::postgres::row;

impl Verb for Report {
    type Answer = Vec<Reported>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Reported>> {
        let ids: Vec<_> = self.items.iter().map(|item| row::uuid(item.task)).collect();
        let tasks = Standing::of(scope, row::session_uuid(self.session), ids).await?;
        let (mut news, mut logs, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for ReportItem { task, epoch, progress, log } in &self.items {
            let task = row::uuid(*task);
            let standing = tasks.get(&task).filter(|task| !task.foreign);
            let Some(standing) = standing else {
                answers.push(Reported::Unknown);
                continue;
            };
            if !standing.holds(*epoch) {
                answers.push(Reported::LeaseLost);
                continue;
            }
            if progress.is_some() {
                let Standing { lane, run, epoch, .. } = *standing;
                let told = ToldTask { id: task, lane, run, epoch };
                scope.told.tell(EventKind::TaskProgressed, told);
            }
            news.extend(progress.iter().map(|progress| (task, progress)));
            logs.extend(log.iter().map(|chunk| standing.logs(task, chunk)));
            answers.push(Reported::Done);
        }
        progress::keep(scope, news).await?;
        log::keep(scope, logs).await?;
        Ok(answers)
    }
}

/// How a session stands to a task, which is locked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Whether it is another tenant's than the session's.
    pub(super) foreign: bool,
    held: bool,
    lane: i32,
    epoch: i32,
    run: i32,
    attempt: i32,
}

impl Standing {
    /// Locks tasks, in the order of their ids.
    pub(super) async fn of(
        scope: &Scope<'_>,
        session: Uuid,
        mut tasks: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Self>> {
        tasks.sort_unstable();
        tasks.dedup();
        let select = "/* report.standing */ SELECT task.id,
                coalesce((SELECT tenant FROM duly.session WHERE id = $2) <> lane.tenant, false),
                task.status = 2 AND task.session IS NOT DISTINCT FROM $2,
                task.epoch, task.run, task.charged + 1, task.lane
            FROM duly.task JOIN duly.lane ON lane.id = task.lane
            WHERE task.id = ANY($1) ORDER BY task.id FOR NO KEY UPDATE OF task";
        let mut standings = HashMap::default();
        for row in scope.query(select, &[&tasks, &session]).await? {
            let standing = Self {
                foreign: row.try_get(1)?,
                held: row.try_get(2)?,
                epoch: row.try_get(3)?,
                run: row.try_get(4)?,
                attempt: row.try_get(5)?,
                lane: row.try_get(6)?,
            };
            standings.insert(row.try_get(0)?, standing);
        }
        Ok(standings)
    }

    /// Whether the session holds the task under this grant.
    pub(super) fn holds(&self, epoch: u32) -> bool {
        self.held && self.epoch == row::encode_count(epoch)
    }

    fn logs<'a>(&self, task: Uuid, chunk: &'a duly_core::log::LogChunk) -> Logged<'a> {
        let Self { epoch, run, attempt, .. } = *self;
        Logged { task, epoch, run, attempt, chunk }
    }
}
