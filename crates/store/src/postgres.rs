//! PostgreSQL as the truth: many nodes share one database.

mod attempts;
mod audit;
mod bulk;
mod clock;
pub mod database;
mod days;
mod dead_letters;
mod error;
mod filter;
mod finish_in;
mod functions;
mod heads;
mod health;
pub mod inspection;
mod keys;
mod lanes;
mod leader;
mod lease;
pub mod limit;
mod links;
mod list;
mod listener;
mod migrate;
mod node;
mod nodes;
mod notifier;
mod open;
mod outbox;
mod page;
mod partitions;
mod pauses;
mod periodic;
mod pool;
mod queues;
mod range;
mod reports;
mod retention;
mod row;
mod schedules;
pub mod schema;
#[cfg(feature = "conformance")]
pub mod scratch;
mod server_errors;
mod serving;
mod sessions;
mod settings;
mod snapshot;
mod task_state;
mod tasks;
mod tenants;
mod tls;
mod verb;
mod wakes;
mod weights;
mod workflows;

use std::ops::Deref;
use std::sync::Arc;

use duly_core::audit::Author;
use duly_core::ports::clock::Clock;
use duly_core::ports::store::Rules;
use tokio::task::JoinSet;

use self::error::Fault;
pub use self::finish_in::{FinishError, finish_in};
use self::node::Node;
pub use self::open::OpenError;
use self::pool::Pool;

/// A node's view of the shared store; cheap to clone.
#[derive(Clone)]
pub struct PostgresStore {
    node: Arc<Node>,
    /// For whom it makes changes, if they are to be audited.
    author: Option<Author>,
    /// The node's background tasks; they end with the store.
    _background: Arc<JoinSet<()>>,
}

impl Deref for PostgresStore {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl PostgresStore {
    /// Opens the database at an address such as `postgres://user:password@host:5432/database`, and
    /// brings its schema up to date.
    pub async fn open(url: &str, rules: Rules) -> Result<Self, OpenError> {
        Self::connect(url, rules, None).await
    }

    /// The same with the caller's clock, for tests.
    pub async fn open_at(
        url: &str,
        rules: Rules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::connect(url, rules, Some(clock)).await
    }

    async fn connect(
        url: &str,
        rules: Rules,
        clock: Option<Arc<dyn Clock>>,
    ) -> Result<Self, OpenError> {
        let (config, connector) = open::address(url)?;
        open::prepare(&config, &connector).await?;
        let broken = |fault: Fault| open::faulty(open::place(&config), &fault);
        let reads_as_query = open::may_read_as_query(&config, &connector).await?;
        let pool = Pool::new(&config, connector.clone(), clock, reads_as_query).map_err(broken)?;
        let node = Arc::new(Node::join(pool, rules).await.map_err(broken)?);
        let mut background = JoinSet::new();
        let one = Arc::clone(&node);
        background.spawn(async move { one.notifier.run(one.id, &one.pool).await });
        let one = Arc::clone(&node);
        background.spawn(async move { listener::run(&one, config, connector).await });
        let one = Arc::clone(&node);
        background.spawn(async move { periodic::run(&one).await });
        Ok(Self { node, author: None, _background: Arc::new(background) })
    }

    /// The same store with a bug that tests must catch.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(self, bug: crate::planted::PlantedBug) -> Self {
        match bug {
            crate::planted::PlantedBug::LateReading => self.node.clock.plant_late_reading(),
            crate::planted::PlantedBug::ForgottenTenant => self.node.pool.plant_forgotten_tenant(),
            crate::planted::PlantedBug::EventsByNumber => self.node.plant_events_by_number(),
            _ => {}
        }
        self
    }
}
