//! What every handler shares.

use std::sync::Arc;

use duly_engine::Engine;
use duly_engine::random::OsRandom;

use crate::attempts::Attempts;
use crate::body::Budget;
use crate::caller::Caller;
use crate::config::Config;
use crate::request_id::RequestIds;
use crate::route_table::RouteTable;
use crate::stream::StreamPlaces;
use crate::throttle::Throttle;

/// The state of the router; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) request_ids: RequestIds,
    pub(crate) budget: Budget,
    pub(crate) attempts: Attempts,
    pub(crate) throttle: Throttle,
    pub(crate) stream_places: StreamPlaces,
    /// What every route declares.
    pub(crate) routes: RouteTable,
    /// Draws the waits of failed attempts that are reported over the network.
    pub(crate) random: OsRandom,
}

impl App {
    pub(crate) fn new(engine: Engine, config: Config, routes: RouteTable) -> Self {
        let request_ids = RequestIds::new(config.instance);
        let attempts = Attempts::new(config.limits.failed_sign_ins);
        let throttle = Throttle::new(config.limits.requests_per_second);
        let stream_places = StreamPlaces::new(&config);
        let (budget, random) = (Budget::default(), OsRandom::new());
        Self(Arc::new(Shared {
            engine,
            config,
            request_ids,
            budget,
            attempts,
            throttle,
            stream_places,
            routes,
            random,
        }))
    }
}

impl App {
    /// The engine for what a caller changes: the audit log tells who it was, and sessions are the caller's
    /// own.
    pub(crate) fn acting(&self, caller: &Caller) -> Engine {
        self.engine.on_behalf_of(caller.author())
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
