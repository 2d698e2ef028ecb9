//! A remote worker.

use std::sync::Arc;

use anyhow::bail;
use duly_client::wire::RegisterRequest;
use duly_client::{Client, Error, RemoteSource};
use duly_core::limits::PREFETCH;
use duly_core::name::TypeName;
use duly_core::ports::random::Random;
use duly_engine::random::OsRandom;
use duly_worker::{Executor, Registry};

use super::{guard, loopback, registry};
use crate::args::WorkerRunArgs;

/// A remote worker before it opens its session.
pub(crate) struct RemoteWorker {
    client: Client,
    request: RegisterRequest,
    registry: Registry,
    config: duly_worker::Config,
    random: Arc<dyn Random>,
}

impl RemoteWorker {
    /// Prepares a worker without calling the server.
    pub(crate) fn new(args: &WorkerRunArgs, name: &str) -> anyhow::Result<Self> {
        let client = args.server.connect()?;
        let mut allowed = args.allow_nets.clone();
        if client.is_local() {
            // Tasks of a server on this machine were submitted on this machine.
            allowed.extend(loopback());
        }
        let guard = guard(allowed, args.allow_ports.clone());
        let registry = select_types(registry(guard, args.allow_shell), &args.types)?;
        let request = RegisterRequest {
            name: Some(name.to_owned()),
            types: registry.types().into_iter().map(String::from).collect(),
            queues: args.queues.iter().map(ToString::to_string).collect(),
            capacity: u32::try_from(args.concurrency).ok(),
        };
        let config = duly_worker::Config { concurrency: args.concurrency, prefetch: PREFETCH };
        Ok(Self { client, request, registry, config, random: Arc::new(OsRandom::new()) })
    }

    /// The server's address.
    pub(crate) fn server(&self) -> &str {
        self.client.base_url().as_str()
    }

    /// Its registration.
    pub(crate) fn request(&self) -> &RegisterRequest {
        &self.request
    }

    /// Opens a session, in one try.
    pub(crate) async fn connect(&self) -> Result<Arc<RemoteSource>, Error> {
        let random = Arc::clone(&self.random);
        RemoteSource::connect(self.client.clone(), self.request.clone(), random).await
    }

    /// The executor for this session.
    pub(crate) fn executor(self, source: Arc<RemoteSource>) -> Executor {
        Executor::new(self.config, self.registry, source, self.random)
    }
}

/// The handlers of the requested types; all if none is named.
fn select_types(registry: Registry, types: &[TypeName]) -> anyhow::Result<Registry> {
    if types.is_empty() {
        return Ok(registry);
    }
    if let Some(unknown) = types.iter().find(|name| registry.get(name).is_none()) {
        let known: Vec<_> = registry.types().iter().map(ToString::to_string).collect();
        let hint =
            if unknown.as_str() == "shell" { "; pass --allow-shell to add shell" } else { "" };
        bail!(
            "there is no built-in handler for `{unknown}`; use one of {}{hint}",
            known.join(", ")
        );
    }
    Ok(registry.only(types))
}
