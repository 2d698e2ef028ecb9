//! Reading what ties tasks to others: one more statement for tasks of a page that have links.

use std::sync::Arc;

use deadpool_postgres::GenericClient;
use duly_core::task::Task;
use duly_core::workflow::{Dependency, Links, Membership};
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Result;
use super::row;
use super::task_state::linked::{HAS_PARENTS, RENDERS, decode_condition};

/// What the row of a task says about its links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linked {
    task: Uuid,
    bits: i32,
    workflow: Option<Uuid>,
}

impl Linked {
    /// Reads a row of [`row::TASK_COLUMNS`].
    pub(super) fn read(row: &Row) -> Result<Self> {
        let bits: Option<i32> = row.try_get(29)?;
        Ok(Self { task: row.try_get(0)?, bits: bits.unwrap_or(0), workflow: row.try_get(30)? })
    }

    /// Whether the task itself has links. One that others depend on may have none.
    pub(super) fn is_shown(&self) -> bool {
        self.bits & (HAS_PARENTS | RENDERS) != 0 || self.workflow.is_some()
    }
}

/// Edges to tasks, and their names in their workflows.
const SELECT: &str = "/* task.links */ SELECT child, parent, condition, NULL FROM duly.edge
    WHERE child = ANY($1)
    UNION ALL
    SELECT m.task, NULL, NULL, m.key FROM unnest($2::uuid[], $3::uuid[]) r(workflow, task)
    JOIN duly.member m ON m.workflow = r.workflow AND m.task = r.task
    ORDER BY 1, 2";

/// Fills in what ties these tasks to others.
pub(super) async fn fill(
    client: &impl GenericClient,
    tasks: &mut [Task],
    linked: &[Linked],
) -> Result<()> {
    let shown: HashMap<Uuid, Linked> =
        linked.iter().filter(|it| it.is_shown()).map(|it| (it.task, *it)).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let children: Vec<_> =
        shown.values().filter(|it| it.bits & HAS_PARENTS != 0).map(|it| it.task).collect();
    let member = |it: &Linked| it.workflow.map(|workflow| (workflow, it.task));
    let (workflows, members): (Vec<_>, Vec<_>) = shown.values().filter_map(member).unzip();
    let statement = client.prepare_cached(SELECT).await?;
    let mut links: HashMap<Uuid, Links> = HashMap::default();
    for row in client.query(&statement, &[&children, &workflows, &members]).await? {
        let task: Uuid = row.try_get(0)?;
        let links = links.entry(task).or_default();
        if let Some(parent) = row.try_get(1)? {
            let on = decode_condition(row.try_get(2)?, task)?;
            links.dependencies.push(Dependency { parent: row::task_id(parent), on });
        } else {
            let id = shown.get(&task).and_then(|it| it.workflow).map(row::workflow_id);
            let key = row.try_get(3)?;
            links.workflow = id.map(|id| Membership { id, key });
        }
    }
    for task in tasks {
        let id = row::uuid(task.id);
        let Some(Linked { bits, .. }) = shown.get(&id) else { continue };
        let found = links.remove(&id).unwrap_or_default();
        let found = Links { render: bits & RENDERS != 0, ..found };
        // All its parents may be gone.
        task.links = (!found.is_empty()).then(|| Arc::new(found));
    }
    Ok(())
}
