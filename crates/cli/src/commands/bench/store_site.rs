//! The stores of a run: fresh files in a directory, or fresh databases on a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duly_core::ports::store::Store;
use duly_store::clock::SystemClock;
use tokio::process::Command;

use super::auth::Access;
use crate::wiring::{self, Database, Embedded};

/// After this time a store without work is idle.
const SETTLED: Duration = Duration::from_secs(4);

/// The location of the store of one measurement, which starts empty.
#[derive(Clone)]
pub(super) enum StoreSite {
    /// Files in this folder.
    Folder(PathBuf),
    /// This database.
    Database(Arc<Database>),
}

impl StoreSite {
    pub(super) async fn open(self) -> anyhow::Result<OpenStore> {
        match self {
            Self::Folder(folder) => {
                let store = wiring::open_file(&folder, Arc::new(SystemClock::default()))?;
                Ok(OpenStore::File { store, folder })
            }
            Self::Database(database) => {
                let store = wiring::open_database(database.url()).await?;
                Ok(OpenStore::Database { store, database })
            }
        }
    }

    /// Sets the arguments of a server on this store, with or without a worker.
    pub(super) fn add_serve_args(&self, command: &mut Command, has_worker: bool, access: Access) {
        if let (Self::Folder(folder), Access::Usual) = (self, access) {
            command.args(["dev", "--data"]).arg(folder);
            command.args(if has_worker { &[][..] } else { &["--concurrency", "0"] });
            return;
        }
        command.arg("serve").args(if has_worker { &[][..] } else { &["--roles", "api,scheduler"] });
        match access {
            Access::Usual | Access::Open => command.arg("--insecure"),
            // The user who creates the databases owns their tables.
            Access::Keys(keys) => command.arg("--allow-owner").arg("--config").arg(keys.config()),
        };
        // Not as an argument, since it may contain a password.
        match self {
            Self::Folder(folder) => {
                command.env("DULY_STORE", format!("sqlite:{}", folder.join("duly.db").display()))
            }
            Self::Database(database) => command.env("DULY_STORE", database.url()),
        };
    }

    pub(super) async fn remove(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(folder) => Ok(std::fs::remove_dir_all(folder)?),
            Self::Database(database) => Ok(database.remove().await?),
        }
    }
}

/// An open store.
pub(super) enum OpenStore {
    File { store: Arc<Embedded>, folder: PathBuf },
    Database { store: Arc<dyn Store>, database: Arc<Database> },
}

impl OpenStore {
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

    /// Waits until the store is idle and its writes are on disk: a store that was filled quickly keeps
    /// the disk busy for a while.
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

    pub(super) fn close(self) -> StoreSite {
        match self {
            Self::File { folder, .. } => StoreSite::Folder(folder),
            Self::Database { database, .. } => StoreSite::Database(database),
        }
    }
}
