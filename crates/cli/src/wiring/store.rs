//! The address of the store, and how it is opened.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use duly_core::ports::clock::Clock;
use duly_core::ports::store::{Rules, Store};
use duly_store::clock::SystemClock;
#[cfg(feature = "planted-bugs")]
use duly_store::planted::PlantedBug;
use duly_store::postgres::schema::{Migration, Privilege};
use duly_store::postgres::{PostgresStore, schema};
use duly_store::sqlite::SqliteStore;

use super::Plan;
use crate::exit::Usage;

/// The address of a store. It may hold a password, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl(String);

impl FromStr for StoreUrl {
    type Err = Infallible;

    /// Accepts any text: the argument parser would print a refused one. See [`StoreUrl::location`].
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.split(':').next().filter(|scheme| scheme.len() < self.0.len());
        write!(f, "{}:…", scheme.unwrap_or("?"))
    }
}

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// A file that only this process opens.
    Sqlite(PathBuf),
    /// A database that nodes share.
    Postgres(StoreUrl),
}

impl StoreUrl {
    /// Parses the address.
    pub(crate) fn location(self) -> Result<StoreLocation, Usage> {
        if self.0.starts_with("postgres://") || self.0.starts_with("postgresql://") {
            return Ok(StoreLocation::Postgres(self));
        }
        match self.0.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(StoreLocation::Sqlite(path.into())),
            _ => Err(Usage::new(
                "the store must be postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:PATH",
            )),
        }
    }

    /// The address with its password, for connecting.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// Migrates a shared database; returns how many migrations were applied.
pub(crate) async fn migrate(url: &StoreUrl) -> anyhow::Result<usize> {
    Ok(schema::up(postgres_url(url)?).await?)
}

/// The migrations of a shared database.
pub(crate) async fn migrations(url: &StoreUrl) -> anyhow::Result<Vec<Migration>> {
    Ok(schema::status(postgres_url(url)?).await?)
}

/// Grants the roles of a shared database their rights. Returns the missing roles.
pub(crate) async fn grant_rights(url: &StoreUrl) -> anyhow::Result<Vec<String>> {
    Ok(schema::grant_rights(postgres_url(url)?).await?)
}

/// Refuses a user of a shared database who may do more than a node needs.
pub(crate) async fn check_privilege(store: &StoreLocation) -> anyhow::Result<()> {
    let StoreLocation::Postgres(url) = store else { return Ok(()) };
    let (user, privilege) =
        schema::privilege(url.reveal()).await.context("cannot open this store")?;
    let Some(privilege) = privilege else { return Ok(()) };
    let is = match privilege {
        Privilege::Superuser => "is a superuser",
        Privilege::Owner => "owns the tables, or would create them",
    };
    Err(Usage::new(format!(
        "the database user {user} {is}, so a node that runs as this user is not held to row-level \
         security and append-only logs: run `duly migrate up` as {user} and the node as another user \
         (CREATE ROLE runner LOGIN PASSWORD '…' IN ROLE duly_engine), or pass --allow-owner"
    ))
    .into())
}

fn postgres_url(url: &StoreUrl) -> Result<&str, Usage> {
    match url.clone().location()? {
        StoreLocation::Postgres(_) => Ok(url.reveal()),
        StoreLocation::Sqlite(_) => Err(Usage::new(
            "a SQLite file is migrated when a server opens it; there is nothing to do",
        )),
    }
}

/// An open store.
pub(super) struct OpenedStore {
    pub(super) store: Arc<dyn Store>,
    /// How many tasks an earlier process left running.
    pub(super) reclaimed: usize,
}

/// Opens the store of a node and migrates its schema.
pub(super) async fn open(plan: &Plan) -> anyhow::Result<OpenedStore> {
    let opened = open_plain(plan).await?;
    #[cfg(feature = "planted-bugs")]
    if plan.planted_bug == Some(PlantedBug::PositionBeforeDelivery) {
        let store = duly_store::planted::with_early_positions(opened.store);
        return Ok(OpenedStore { store, ..opened });
    }
    Ok(opened)
}

async fn open_plain(plan: &Plan) -> anyhow::Result<OpenedStore> {
    let rules = Rules { loss_limit: plan.loss_limit };
    match &plan.store {
        StoreLocation::Sqlite(path) => {
            let store = SqliteStore::open(path, clock(plan), rules)?;
            let reclaimed = store.reclaimed();
            #[cfg(feature = "planted-bugs")]
            let store = match plan.planted_bug {
                Some(bug) => store.with_bug(bug),
                None => store,
            };
            Ok(OpenedStore { store: Arc::new(store), reclaimed })
        }
        StoreLocation::Postgres(url) => {
            let store = PostgresStore::open(url.reveal(), rules).await;
            let store = store.context("cannot open this store")?;
            #[cfg(feature = "planted-bugs")]
            let store = match plan.planted_bug {
                Some(bug) => store.with_bug(bug),
                None => store,
            };
            Ok(OpenedStore { store: Arc::new(store), reclaimed: 0 })
        }
    }
}

/// The clock of a store that has no server of its own.
#[cfg(not(feature = "planted-bugs"))]
fn clock(_plan: &Plan) -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

#[cfg(feature = "planted-bugs")]
fn clock(plan: &Plan) -> Arc<dyn Clock> {
    match plan.clock_ahead {
        None => Arc::new(SystemClock::default()),
        Some(by) => Arc::new(duly_store::clock::ClockAhead::new(by)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url: StoreUrl = "postgres://duly:secret@db/duly".parse().unwrap();
        assert_eq!(format!("{url:?}"), "postgres:…");
        assert!(!format!("{:?}", url.location().unwrap()).contains("secret"));
        let mistyped: StoreUrl = "postgre//duly:secret@db/duly".parse().unwrap();
        assert!(!format!("{mistyped:?}").contains("secret"));
        assert!(!mistyped.location().unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn a_store_is_a_file_or_a_database() {
        let location = |text: &str| text.parse::<StoreUrl>().unwrap().location();
        assert_eq!(location("sqlite:a/b.db").unwrap(), StoreLocation::Sqlite("a/b.db".into()));
        assert!(matches!(location("postgresql://db/duly").unwrap(), StoreLocation::Postgres(_)));
        for text in ["", "sqlite:", "mysql://db/duly", "a/b.db"] {
            assert!(location(text).is_err(), "{text}");
        }
    }
}
