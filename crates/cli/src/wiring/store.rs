//! Where tasks are kept, and how that is opened.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use duly_core::ports::store::{Rules, Store};
use duly_store::clock::SystemClock;
use duly_store::postgres::schema::Migration;
use duly_store::postgres::{PostgresStore, schema};
use duly_store::sqlite::SqliteStore;

use super::Plan;
use crate::exit::Usage;

/// A store as it is written. It may hold a password, which is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl(String);

impl FromStr for StoreUrl {
    type Err = Infallible;

    /// Takes any text: whoever reads arguments would show a refused one. See [`StoreUrl::place`].
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

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorePlace {
    /// In a file of this process alone.
    Sqlite(PathBuf),
    /// In a database that nodes share.
    Postgres(StoreUrl),
}

impl StoreUrl {
    /// What the text means.
    pub(crate) fn place(self) -> Result<StorePlace, Usage> {
        if self.0.starts_with("postgres://") || self.0.starts_with("postgresql://") {
            return Ok(StorePlace::Postgres(self));
        }
        match self.0.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(StorePlace::Sqlite(path.into())),
            _ => Err(Usage::new(
                "the store must be postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:PATH",
            )),
        }
    }

    /// The address itself, for whoever connects.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// Brings the schema of a shared database up to date; answers how many scripts that took.
pub(crate) async fn migrate(url: &StoreUrl) -> anyhow::Result<usize> {
    Ok(schema::up(shared(url)?).await?)
}

/// The scripts that make the schema of a shared database.
pub(crate) async fn migrations(url: &StoreUrl) -> anyhow::Result<Vec<Migration>> {
    Ok(schema::status(shared(url)?).await?)
}

/// Gives the roles of a shared database their rights. Answers which roles are missing.
pub(crate) async fn grant_rights(url: &StoreUrl) -> anyhow::Result<Vec<String>> {
    Ok(schema::grant_rights(shared(url)?).await?)
}

fn shared(url: &StoreUrl) -> Result<&str, Usage> {
    match url.clone().place()? {
        StorePlace::Postgres(_) => Ok(url.reveal()),
        StorePlace::Sqlite(_) => Err(Usage::new(
            "a file is brought up to date by whoever opens it; there is nothing to do",
        )),
    }
}

/// An open store.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    /// How many tasks an earlier process left running.
    pub(super) reclaimed: usize,
}

/// Opens the store of a plan and brings its schema up to date.
pub(super) async fn open(plan: &Plan) -> anyhow::Result<Opened> {
    let rules = Rules { loss_limit: plan.loss_limit };
    match &plan.store {
        StorePlace::Sqlite(path) => {
            let store = SqliteStore::open(path, Arc::new(SystemClock::default()), rules)?;
            let reclaimed = store.reclaimed();
            #[cfg(feature = "planted-bugs")]
            let store = match plan.planted_bug {
                Some(bug) => store.with_bug(bug),
                None => store,
            };
            Ok(Opened { store: Arc::new(store), reclaimed })
        }
        StorePlace::Postgres(url) => {
            let store = PostgresStore::open(url.reveal(), rules).await;
            let store = store.context("cannot start on this store")?;
            #[cfg(feature = "planted-bugs")]
            let store = match plan.planted_bug {
                Some(bug) => store.with_bug(bug),
                None => store,
            };
            Ok(Opened { store: Arc::new(store), reclaimed: 0 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url: StoreUrl = "postgres://duly:secret@db/duly".parse().unwrap();
        assert_eq!(format!("{url:?}"), "postgres:…");
        assert!(!format!("{:?}", url.place().unwrap()).contains("secret"));
        let mistyped: StoreUrl = "postgre//duly:secret@db/duly".parse().unwrap();
        assert!(!format!("{mistyped:?}").contains("secret"));
        assert!(!mistyped.place().unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn a_store_is_a_file_or_a_database() {
        let place = |text: &str| text.parse::<StoreUrl>().unwrap().place();
        assert_eq!(place("sqlite:a/b.db").unwrap(), StorePlace::Sqlite("a/b.db".into()));
        assert!(matches!(place("postgresql://db/duly").unwrap(), StorePlace::Postgres(_)));
        for text in ["", "sqlite:", "mysql://db/duly", "a/b.db"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
