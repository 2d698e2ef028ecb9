//! Large workflows for the queries, half of whose tasks have run.

use duly_core::id::WorkflowId;
use duly_core::limits::WORKFLOW_TASKS;
use duly_core::name::TenantName;

use crate::commands::bench::store_site::StoreSite;
use crate::commands::bench::workflows::{fan, workflow};
use crate::commands::bench::world::{Counter, World, no_op};

/// Workflows of each shape. The server remembers the critical path of a workflow that it was asked
/// for, so more than 5 % of the queries must be the first ones: the 95th percentile is theirs.
const EACH: usize = 5;
/// Delay of the tasks that do not run.
const TOMORROW: f64 = 86_400.0;

/// Submits workflows of at most a tenth of `tasks` and runs the first half of each. Returns the store,
/// and the workflows.
pub(super) async fn run_half(
    site: StoreSite,
    tasks: usize,
) -> anyhow::Result<(StoreSite, Vec<WorkflowId>)> {
    let size = (tasks / 10).min(WORKFLOW_TASKS);
    let half = size / 2;
    let spec = |number| no_op(if number < half { 0.0 } else { TOMORROW });
    let world = World::open(site).await?;
    let tenant = TenantName::default_tenant();
    let mut workflows = Vec::with_capacity(2 * EACH);
    for _ in 0..EACH {
        for spec in [workflow(fan(size - 2), spec)?, workflow(layers(size), spec)?] {
            workflows.push(world.engine.submit_workflow(&tenant, spec).await?.id);
        }
    }
    let counter = Counter::new(half * workflows.len());
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    worker.stop(half * workflows.len()).await?;
    Ok((world.close().await, workflows))
}

/// As many layers as tasks in a layer; each task depends on two of the layer before: the parents of
/// each.
fn layers(tasks: usize) -> impl Iterator<Item = Vec<usize>> {
    let width = tasks.isqrt();
    (0..tasks).map(move |number| match number.checked_sub(width) {
        None => Vec::new(),
        Some(above) => vec![above, above / width * width + (above + 1) % width],
    })
}
