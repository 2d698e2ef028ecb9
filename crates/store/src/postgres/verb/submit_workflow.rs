//! Submit a workflow: its row and all its tasks, or nothing.

use duly_core::event::Event;
use duly_core::name::Lane;
use duly_core::ports::store::{Submitted, SubmittedWorkflow};
use duly_core::task::NewTask;
use duly_core::workflow::NewWorkflow;
use foldhash::{HashMap, HashSet};

use super::submit::with_lanes;
use super::ties::Ties;
use super::{Scope, Verb, workflow_key};
use crate::postgres::error::Result;
use crate::postgres::task_state::linked;
use crate::postgres::{PostgresStore, partitions, row};

/// How often a workflow is tried that others store at the same time.
const TRIES: u32 = 5;

impl PostgresStore {
    pub(in crate::postgres) async fn store_workflow(
        &self,
        workflow: &NewWorkflow,
    ) -> Result<SubmittedWorkflow> {
        let mut tries = 0;
        loop {
            let answer = self.run(workflow).await;
            tries += 1;
            match answer {
                // Another call stored it at the same time: the next try finds it.
                Err(fault) if fault.is_repeated() && tries < TRIES => {}
                Err(fault) if fault.is_missing_day() && tries < TRIES => {
                    let days = partitions::of(workflow.tasks.iter().map(|task| task.id));
                    self.server_errors.note(self.make_days(days).await)?;
                }
                answer => return self.server_errors.note(answer),
            }
        }
    }
}

impl Verb for NewWorkflow {
    type Answer = SubmittedWorkflow;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<SubmittedWorkflow> {
        let patience = "/* workflow.patience */ SELECT set_config('lock_timeout', $1, true)";
        scope.query(patience, &[&partitions::SUBMIT_PATIENCE]).await?;
        let id = row::workflow_uuid(self.id);
        let select = "/* workflow.stored */ SELECT created_at FROM duly.workflow WHERE id = $1";
        if let Some(stored) = scope.query(select, &[&id]).await?.first() {
            return Ok(SubmittedWorkflow::Stored { at: row::instant(stored.try_get(0)?) });
        }
        if let Some(answer) = workflow_key::answer(scope, self).await? {
            return Ok(answer);
        }
        let Some(lanes) = unknown_lanes(scope, &self.tasks).await? else {
            return Ok(SubmittedWorkflow::LaneLimit);
        };
        let tasks: Vec<_> = self.tasks.iter().collect();
        let ties = Ties::lock(scope, &tasks).await?;
        if let Some(refused) = refuses(self, &ties) {
            return Ok(refused);
        }
        let made = scope.store.lanes.make(scope.transaction(), &lanes).await?;
        scope.wakes.make(made);
        workflow_key::take(scope, self).await?;
        let insert = "/* workflow.store */ INSERT INTO duly.workflow
                (id, tenant, created_at, open, fail_fast, name, labels)
            VALUES ($1, $2, $3, 0, $4, $5, $6)";
        let (now, labels) = (scope.now.millis(), row::encode_labels(&self.labels));
        let (tenant, fail_fast) = (self.tenant.as_str(), self.fail_fast);
        scope.execute(insert, &[&id, &tenant, &now, &fail_fast, &self.name, &labels]).await?;
        scope.told.emit(&Event::workflow_started(&self.tenant, self.id, &self.name, scope.now));
        linked::store(scope, &with_lanes(scope, &tasks)?, &ties.parents()).await?;
        Ok(SubmittedWorkflow::Stored { at: scope.now })
    }
}

/// The lanes of tasks that are to be made; `None` if there would be too many.
async fn unknown_lanes<'a>(
    scope: &Scope<'_>,
    tasks: &'a [NewTask],
) -> Result<Option<Vec<&'a Lane>>> {
    let unknown = |lane: &&Lane| scope.store.lanes.find(lane).is_none();
    let lanes = || tasks.iter().map(|task| &task.lane).filter(unknown);
    if lanes().next().is_none() {
        return Ok(Some(Vec::new()));
    }
    let room = scope.store.lanes.hold(scope.transaction()).await?;
    let lanes: HashSet<&Lane> = lanes().collect();
    Ok((lanes.len() <= room).then(|| lanes.into_iter().collect()))
}

/// Why a workflow cannot be stored, if a parent outside of it is in the way.
fn refuses(workflow: &NewWorkflow, ties: &Ties) -> Option<SubmittedWorkflow> {
    let own: HashSet<_> = workflow.tasks.iter().map(|task| task.id).collect();
    let all = workflow.tasks.iter().flat_map(NewTask::dependencies).map(|it| it.parent);
    let foreign: Vec<_> = all.filter(|parent| !own.contains(parent)).collect();
    let mut more = HashMap::default();
    foreign.iter().for_each(|parent| *more.entry(*parent).or_insert(0_usize) += 1);
    let refused = foreign.iter().find_map(|it| ties.refuses_child(&workflow.tenant, *it, more[it]));
    refused.map(|refused| match refused {
        Submitted::TooManyChildren { parent } => SubmittedWorkflow::TooManyChildren { parent },
        Submitted::UnknownParent { parent } => SubmittedWorkflow::UnknownParent { parent },
        other => unreachable!("a child is refused for its parent, and not as {other:?}"),
    })
}
