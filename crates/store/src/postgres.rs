//! PostgreSQL as the truth: many nodes share one database.

mod attempts;
mod bulk;
mod clock;
mod days;
mod dead_letters;
mod error;
mod filter;
#[cfg(test)]
mod handmade;
mod heads;
mod lanes;
mod lease;
mod list;
mod migrate;
mod node;
mod open;
mod page;
mod partitions;
mod pauses;
mod pool;
mod pulse;
mod queues;
mod range;
mod reports;
mod retention;
mod row;
#[cfg(feature = "conformance")]
pub mod scratch;
mod serving;
mod sessions;
mod settings;
mod snapshot;
mod tasks;
mod tls;
mod verb;
mod wakes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use duly_core::ports::clock::Clock;
use duly_core::ports::store::Rules;
use uuid::Uuid;

use self::clock::Estimate;
use self::error::Fault;
use self::heads::Heads;
use self::lanes::Lanes;
pub use self::open::OpenError;
use self::pauses::Pauses;
use self::pool::Pool;
use self::sessions::Sessions;
use crate::hints::Hints;

/// A node's view of the shared store.
pub struct PostgresStore {
    pool: Pool,
    /// Names this node among those that have the store open; new with every opening.
    node: Uuid,
    rules: Rules,
    lanes: Lanes,
    heads: Heads,
    sessions: Sessions,
    pauses: Pauses,
    clock: Estimate,
    hints: Arc<Hints>,
    /// Whether the last call failed for a reason outside the data.
    troubled: AtomicBool,
}

impl PostgresStore {
    /// Opens the database at an address such as `postgres://user:password@host:5432/database`, and
    /// brings its schema up to date.
    pub async fn open(url: &str, rules: Rules) -> Result<Self, OpenError> {
        Self::connect(url, rules, None).await
    }

    /// The same on a clock of the caller's, for tests.
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
        let asked = tls::parse(url).map_err(|error| OpenError::Address(error::chain(&error)))?;
        let config = pool::configure(asked);
        let connector = tls::connector();
        let connector = connector.map_err(|error| OpenError::Unsuitable(error.to_string()))?;
        open::prepare(&config, &connector).await?;
        let broken = |fault: Fault| OpenError::Database {
            place: open::place(&config),
            reason: fault.to_string(),
        };
        let pool = Pool::new(&config, connector, clock).map_err(broken)?;
        let (node, now) = node::join(&pool).await.map_err(broken)?;
        let store = Self {
            pool,
            node,
            rules,
            lanes: Lanes::default(),
            heads: Heads::default(),
            sessions: Sessions::default(),
            pauses: Pauses::default(),
            clock: Estimate::new(now),
            hints: Arc::new(Hints::default()),
            troubled: AtomicBool::new(false),
        };
        store.make_next_days(now).await.map_err(broken)?;
        store.look_around().await.map_err(broken)?;
        Ok(store)
    }
}
