//! Where the stores of a run are: fresh files in a directory, or fresh databases on a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duly_core::ports::store::Store;
use duly_store::clock::SystemClock;
use tokio::process::Command;

use crate::wiring::{self, Database, Embedded};

/// When a store that has nothing to do is idle for good.
const SETTLED: Duration = Duration::from_secs(4);

/// Where the store of one measurement is, which begins empty.
#[derive(Clone)]
pub(super) enum Place {
    /// In files of this folder.
    Folder(PathBuf),
    /// In this database.
    Database(Arc<Database>),
}

impl Place {
    pub(super) async fn open(self) -> anyhow::Result<Open> {
        match self {
            Self::Folder(folder) => {
                let store = wiring::open_file(&folder, Arc::new(SystemClock::default()))?;
                Ok(Open::File { store, folder })
            }
            Self::Database(database) => {
                let store = wiring::open_database(database.url()).await?;
                Ok(Open::Database { store, database })
            }
        }
    }

    /// Makes a command start a server on it, with a worker of its own or without.
    pub(super) fn serve(&self, command: &mut Command, has_worker: bool) {
        match self {
            Self::Folder(folder) => {
                command.args(["dev", "--data"]).arg(folder);
                command.args(if has_worker { &[][..] } else { &["--concurrency", "0"] });
            }
            Self::Database(database) => {
                // Not as an argument, since it may hold a password.
                command.args(["serve", "--insecure"]).env("DULY_STORE", database.url());
                command.args(if has_worker { &[][..] } else { &["--roles", "api,scheduler"] });
            }
        }
    }

    pub(super) async fn remove(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(folder) => Ok(std::fs::remove_dir_all(folder)?),
            Self::Database(database) => Ok(database.remove().await?),
        }
    }
}

/// A store that is open.
pub(super) enum Open {
    File { store: Arc<Embedded>, folder: PathBuf },
    Database { store: Arc<dyn Store>, database: Arc<Database> },
}

impl Open {
    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::File { store, .. } => Arc::clone(store) as _,
            Self::Database { store, .. } => Arc::clone(store),
        }
    }

    /// Bytes that the store has written to its log; a server counts those of all its databases.
    pub(super) async fn log_bytes(&self) -> anyhow::Result<u64> {
        match self {
            Self::File { store, .. } => Ok(store.log_bytes()),
            Self::Database { database, .. } => Ok(database.log_bytes().await?),
        }
    }

    /// Waits until the store is idle and what it wrote is on the disk: a store that was filled in a
    /// hurry keeps the disk busy for a while.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        tokio::time::sleep(SETTLED).await;
        match self {
            Self::File { folder, .. } => {
                for entry in std::fs::read_dir(folder)? {
                    std::fs::File::open(entry?.path())?.sync_all()?;
                }
            }
            Self::Database { database, .. } => database.settle().await?,
        }
        Ok(())
    }

    pub(super) fn place(self) -> Place {
        match self {
            Self::File { folder, .. } => Place::Folder(folder),
            Self::Database { database, .. } => Place::Database(database),
        }
    }
}
