//! Tasks that come with outcomes: stored in the transaction that commits these.

use duly_core::name::Lane;
use duly_core::task::NewTask;
use foldhash::HashSet;
use uuid::Uuid;

use super::Scope;
use super::submit::with_lanes;
use super::ties::Ties;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::linked;
use crate::postgres::task_state::state::each;

/// Stores tasks that come with successes of tasks which are locked and still RUNNING. Those that are there
/// are left alone.
pub(super) async fn store(scope: &mut Scope<'_>, tasks: &[&NewTask]) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let select = "/* then.stored */ SELECT id FROM duly.task WHERE id = ANY($1)";
    let ids = each(tasks, |task| row::uuid(task.id));
    let mut known: HashSet<Uuid> = HashSet::default();
    for found in scope.query(select, &[&ids]).await? {
        known.insert(found.try_get(0)?);
    }
    let new: Vec<_> =
        tasks.iter().copied().filter(|task| known.insert(row::uuid(task.id))).collect();
    make_lanes(scope, &new).await?;
    let parents = Ties::lock(scope, &new).await?.parents();
    linked::store(scope, &with_lanes(scope, &new)?, &parents).await?;
    Ok(())
}

/// Makes the lanes of tasks that are not there yet, however many there are: an outcome is not refused for
/// that.
async fn make_lanes(scope: &mut Scope<'_>, tasks: &[&NewTask]) -> Result<()> {
    let unknown = |lane: &&Lane| scope.store.lanes.find(lane).is_none();
    if !tasks.iter().map(|task| &task.lane).any(|lane| unknown(&lane)) {
        return Ok(());
    }
    scope.store.lanes.hold(scope.transaction()).await?;
    let lanes: HashSet<&Lane> = tasks.iter().map(|task| &task.lane).filter(unknown).collect();
    let lanes: Vec<_> = lanes.into_iter().collect();
    let made = scope.store.lanes.make(scope.transaction(), &lanes).await?;
    scope.wakes.make(made);
    Ok(())
}
