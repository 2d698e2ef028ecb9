//! What new tasks are to be tied to: their parents and workflows, locked. Parents come first, by their
//! ids, then workflows, as wherever a task ends.

use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::CHILDREN;
use duly_core::name::TenantName;
use duly_core::ports::store::Submitted;
use duly_core::state::Status;
use duly_core::task::NewTask;
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use super::Scope;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::linked::ONE_CHILD;

/// A task that others are to depend on.
struct Parent {
    tenant: TenantName,
    status: Status,
    children: usize,
}

/// A workflow that tasks are to join.
struct Joined {
    tenant: String,
    is_over: bool,
}

/// What new tasks are to be tied to.
#[derive(Default)]
pub(super) struct Ties {
    parents: HashMap<TaskId, Parent>,
    workflows: HashMap<WorkflowId, Joined>,
}

impl Ties {
    /// Locks the parents of new tasks that are not among them, and their workflows.
    pub(super) async fn lock(scope: &Scope<'_>, tasks: &[&NewTask]) -> Result<Self> {
        let mut ties = Self::default();
        let linked: Vec<_> = tasks.iter().filter(|task| task.links.is_some()).collect();
        if linked.is_empty() {
            return Ok(ties);
        }
        let own: HashSet<TaskId> = linked.iter().map(|task| task.id).collect();
        let parents = linked.iter().flat_map(|task| task.dependencies()).map(|it| it.parent);
        let mut parents: Vec<_> =
            parents.filter(|parent| !own.contains(parent)).map(row::uuid).collect();
        let mut more = HashMap::<Uuid, usize>::default();
        parents.iter().for_each(|parent| *more.entry(*parent).or_default() += 1);
        parents.sort_unstable();
        parents.dedup();
        let ids = tasks.iter().map(|task| row::uuid(task.id));
        let days: Vec<_> = parents.iter().copied().chain(ids).collect();
        scope.query("/* ties.keep_days */ SELECT duly.keep_days($1)", &[&days]).await?;
        if !parents.is_empty() {
            ties.lock_parents(scope, &parents, &more).await?;
        }
        let membership = |task: &&&NewTask| task.links.as_ref()?.workflow.as_ref().map(|it| it.id);
        let mut workflows: Vec<_> =
            linked.iter().filter_map(membership).map(row::workflow_uuid).collect();
        workflows.sort_unstable();
        workflows.dedup();
        if !workflows.is_empty() {
            ties.lock_workflows(scope, &workflows).await?;
        }
        Ok(ties)
    }

    /// `more` says how many children each would get.
    async fn lock_parents(
        &mut self,
        scope: &Scope<'_>,
        parents: &[Uuid],
        more: &HashMap<Uuid, usize>,
    ) -> Result<()> {
        let select = "/* ties.parents */ SELECT id, lane, status, coalesce(links, 0) FROM duly.task
            WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        for found in scope.query(select, &[&parents]).await? {
            let id: Uuid = found.try_get(0)?;
            let lane = scope.store.lanes.fetch(scope.transaction(), found.try_get(1)?).await?;
            let status = row::decode_status(found.try_get(2)?, id)?;
            let mut children = (found.try_get::<_, i32>(3)? / ONE_CHILD).unsigned_abs() as usize;
            if children + more[&id] > CHILDREN {
                children = count_children(scope, id).await?;
            }
            let parent = Parent { tenant: lane.tenant.clone(), status, children };
            self.parents.insert(row::task_id(id), parent);
        }
        Ok(())
    }

    async fn lock_workflows(&mut self, scope: &Scope<'_>, workflows: &[Uuid]) -> Result<()> {
        let select = "/* ties.workflows */ SELECT id, tenant, status <> 0 OR cancelled IS NOT NULL
            FROM duly.workflow WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        for found in scope.query(select, &[&workflows]).await? {
            let joined = Joined { tenant: found.try_get(1)?, is_over: found.try_get(2)? };
            self.workflows.insert(row::workflow_id(found.try_get(0)?), joined);
        }
        Ok(())
    }

    /// Why a task cannot be stored because of what it is to be tied to.
    pub(super) fn refuses(&self, task: &NewTask) -> Option<Submitted> {
        let links = task.links.as_ref()?;
        let tenant = &task.lane.tenant;
        if let Some(membership) = &links.workflow {
            let workflow = self.workflows.get(&membership.id);
            match workflow.filter(|it| it.tenant == tenant.as_str()) {
                None => return Some(Submitted::UnknownWorkflow),
                Some(workflow) if workflow.is_over => return Some(Submitted::WorkflowEnded),
                Some(_) => {}
            }
        }
        links.dependencies.iter().find_map(|it| self.refuses_child(tenant, it.parent, 1))
    }

    /// Why a parent cannot have so many more children.
    pub(super) fn refuses_child(
        &self,
        tenant: &TenantName,
        parent: TaskId,
        more: usize,
    ) -> Option<Submitted> {
        match self.parents.get(&parent).filter(|it| it.tenant == *tenant) {
            None => Some(Submitted::UnknownParent { parent }),
            Some(it) if it.children + more > CHILDREN => {
                Some(Submitted::TooManyChildren { parent })
            }
            Some(_) => None,
        }
    }

    /// Whether all parents of a task have ended as it asks.
    pub(super) fn are_met(&self, task: &NewTask) -> bool {
        task.dependencies()
            .iter()
            .all(|it| self.parents.get(&it.parent).is_some_and(|parent| it.on.holds(parent.status)))
    }

    /// The task is stored: its parents have one child more.
    pub(super) fn take(&mut self, task: &NewTask) {
        for it in task.dependencies() {
            if let Some(parent) = self.parents.get_mut(&it.parent) {
                parent.children += 1;
            }
        }
    }

    /// The states of the parents.
    pub(super) fn parents(&self) -> HashMap<TaskId, Status> {
        self.parents.iter().map(|(id, parent)| (*id, parent.status)).collect()
    }
}

/// The column counts children that were deleted, too; where that could matter, edges are counted.
async fn count_children(scope: &Scope<'_>, parent: Uuid) -> Result<usize> {
    let select = "/* ties.children */ SELECT count(*) FROM duly.edge WHERE parent = $1";
    let rows = scope.query(select, &[&parent]).await?;
    let count: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(usize::try_from(count).unwrap_or_default())
}
