//! The engine: one value that the API, the CLI and embedded callers hold.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, ListTasks};
use duly_core::submit::Spec;
use duly_core::task::Task;

use crate::command::submit::{Accepted, Error, Refused};

/// Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Stores tasks and answers once they are durable, one answer per spec, in order.
    pub async fn submit(
        &self,
        _tenant: &TenantName,
        _specs: Vec<Spec>,
    ) -> Result<Vec<Result<Accepted, Refused>>, Error> {
        unimplemented!()
    }

    /// One task.
    pub async fn get(&self, _tenant: &TenantName, _id: TaskId) -> store::Result<Option<Task>> {
        unimplemented!()
    }

    /// One page of tasks.
    pub async fn list(&self, _page: ListTasks) -> store::Result<Vec<Task>> {
        unimplemented!()
    }

    /// One task, once its run has ended or the time is over.
    pub async fn wait(
        &self,
        _tenant: &TenantName,
        _id: TaskId,
        _patience: Duration,
    ) -> store::Result<Option<Task>> {
        unimplemented!()
    }

    /// Whether the store takes writes.
    pub async fn check(&self) -> store::Result<()> {
        unimplemented!()
    }

    /// Whether shutdown has begun.
    pub fn is_closing(&self) -> bool {
        unimplemented!()
    }
}
