//! What the orders of people have in common.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, CancelTasks, Control, Controlled, EditTask, ReplayTasks, RetryTasks,
};
use foldhash::HashMap;
use uuid::Uuid;

use super::Scope;
use crate::postgres::PostgresStore;
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::state::TaskState;

#[async_trait]
impl Control for PostgresStore {
    async fn cancel(&self, order: CancelTasks) -> store::Result<Vec<Controlled>> {
        Ok(self.run(&order).await?)
    }

    async fn replay(&self, order: ReplayTasks) -> store::Result<Vec<Controlled>> {
        Ok(self.run(&order).await?)
    }

    async fn retry(&self, order: RetryTasks) -> store::Result<Vec<Controlled>> {
        Ok(self.run(&order).await?)
    }

    async fn edit(&self, order: EditTask) -> store::Result<Controlled> {
        Ok(self.run(&order).await?)
    }
}

/// A tenant's tasks that an order is about, locked.
pub(super) struct Tasks(HashMap<Uuid, TaskState>);

impl Tasks {
    pub(super) async fn lock(
        scope: &Scope<'_>,
        tenant: &TenantName,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Result<Self> {
        let ids: Vec<_> = tasks.map(row::uuid).collect();
        let mut states = TaskState::lock(scope, &ids).await?;
        let mut foreign = Vec::new();
        for state in states.values() {
            if scope.store.lanes.fetch(scope.transaction(), state.lane).await?.tenant != *tenant {
                foreign.push(state.id);
            }
        }
        foreign.iter().for_each(|id| drop(states.remove(id)));
        Ok(Self(states))
    }

    /// Carries an order out for one of them; whether it is so now.
    pub(super) fn order(
        &mut self,
        task: TaskId,
        order: impl FnOnce(&mut TaskState) -> bool,
    ) -> Controlled {
        let Some(state) = self.0.get_mut(&row::uuid(task)) else { return Controlled::Unknown };
        if order(state) { Controlled::Done } else { Controlled::Conflict { status: state.status } }
    }
}
