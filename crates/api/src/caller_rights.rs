//! What a caller may do beside calling a route.

use std::fmt::Display;

use duly_core::access::TenantGrant;
use duly_core::id::SessionId;
use duly_core::name::{QueueName, TypeName};
use duly_core::workflow::request::Members;
use duly_engine::command::keys::Giver;
use duly_engine::command::worker::{self, RemoteWorker};

use crate::caller::{Caller, Identity};
use crate::error::{ApiError, Code};

impl Caller {
    /// What it holds, and may therefore give on.
    pub(crate) fn giver(&self) -> Giver {
        let (queues, types) = match &self.identity {
            Identity::Anonymous | Identity::Token { .. } => (Vec::new(), Vec::new()),
            Identity::Key(key) => (key.queues.clone(), key.types.clone()),
        };
        Giver { tenant: self.grant.clone(), roles: self.roles, queues, types }
    }

    /// Refuses work that the caller's key is not for.
    pub(crate) fn check_scope(
        &self,
        queue: &QueueName,
        task_type: &TypeName,
    ) -> Result<(), ApiError> {
        let Identity::Key(key) = &self.identity else { return Ok(()) };
        one_of("queue", &key.queues, queue)?;
        one_of("type", &key.types, task_type)
    }

    /// The same for tasks that come together.
    pub(crate) fn check_members(&self, members: &Members) -> Result<(), ApiError> {
        let mut specs = members.tasks().iter().map(|member| &member.spec);
        specs.try_for_each(|spec| self.check_scope(&spec.queue, &spec.task_type))
    }

    /// Refuses a worker that would serve what the caller's key is not for. One that names no queues
    /// serves those of the key.
    pub(crate) fn narrow(&self, worker: &mut RemoteWorker) -> Result<(), ApiError> {
        let Identity::Key(key) = &self.identity else { return Ok(()) };
        if worker.queues.is_empty() {
            worker.queues.clone_from(&key.queues);
        }
        worker.queues.iter().try_for_each(|queue| one_of("queue", &key.queues, queue))?;
        worker.types.iter().try_for_each(|name| one_of("type", &key.types, name))
    }

    /// What the sessions of this caller are marked with; on a server that asks nobody they belong to all.
    pub(crate) fn owner(&self) -> Option<String> {
        let is_known = self.identity != Identity::Anonymous;
        is_known.then(|| self.identity.actor().into_owned())
    }

    /// Refuses another caller's session like one that does not exist.
    pub(crate) fn check_session(&self, session: SessionId) -> Result<(), ApiError> {
        match self.owner() {
            Some(owner) if !session.is_of(&owner) => Err(worker::Error::UnknownSession.into()),
            _ => Ok(()),
        }
    }

    /// Refuses callers that hold their roles for one tenant alone.
    pub(crate) fn require_installation(&self) -> Result<(), ApiError> {
        match self.grant {
            TenantGrant::Installation => Ok(()),
            TenantGrant::One(_) => {
                let detail = "only admins of the installation, whose tenant is *, may do this";
                Err(ApiError::new(Code::Forbidden, detail))
            }
        }
    }
}

fn one_of<T: PartialEq + Display>(what: &str, allowed: &[T], asked: &T) -> Result<(), ApiError> {
    if allowed.is_empty() || allowed.contains(asked) {
        return Ok(());
    }
    let detail = format!("the key is not for the {what} `{asked}`");
    Err(ApiError::new(Code::Forbidden, detail))
}
