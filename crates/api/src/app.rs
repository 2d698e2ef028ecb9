//! What every handler shares.

use std::sync::Arc;

use axum::http::HeaderMap;
use duly_core::name::TenantName;
use duly_engine::Engine;
use duly_engine::random::OsRandom;

use crate::body::Budget;
use crate::config::Config;
use crate::error::ApiError;
use crate::parameters::Parameters;
use crate::request_id::RequestIds;

/// The state of the router; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) request_ids: RequestIds,
    pub(crate) budget: Budget,
    /// The query parameters of every route.
    pub(crate) parameters: Parameters,
    /// Draws the waits of failed attempts that are reported over the network.
    pub(crate) random: OsRandom,
}

impl App {
    pub(crate) fn new(engine: Engine, config: Config, parameters: Parameters) -> Self {
        let request_ids = RequestIds::new(config.instance);
        let (budget, random) = (Budget::default(), OsRandom::new());
        Self(Arc::new(Shared { engine, config, request_ids, budget, parameters, random }))
    }

    /// Whose tasks a request is about: the one place that will know of tokens.
    pub(crate) fn tenant_of(&self, headers: &HeaderMap) -> Result<TenantName, ApiError> {
        self.config.tenants.of(headers)
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
