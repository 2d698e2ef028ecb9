//! Facts about a shared database for `duly doctor`.

use super::open::{self, OpenError};
use super::{error, migrate, tls};

/// A database as it was found.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Where it is, without the password.
    pub place: String,
    /// The release of the server.
    pub version: String,
    /// How its text is encoded.
    pub encoding: String,
    /// Whether a commit waits for the disk, as the server's setting `synchronous_commit` says.
    pub synchronous_commit: String,
    /// Whether the server syncs at all, as its setting `fsync` says.
    pub fsync: String,
    /// How many migrations are applied.
    pub applied: usize,
    /// How many migrations there are.
    pub known: usize,
    /// Where nodes listen that were alive within the last minute.
    pub addresses: Vec<String>,
}

/// Reads a database and changes nothing. Fails if no node could use it.
pub async fn inspect(url: &str) -> Result<Inspection, OpenError> {
    let (mut config, tls) = open::address(url)?;
    // Nodes set some settings themselves; this reads those of the server.
    let asked = tls::parse(url).map_err(|error| OpenError::Address(error::chain(&error)))?;
    config.options(asked.get_options().unwrap_or_default());
    let place = open::place(&config);
    let (client, _driver) = open::connect(&config, &tls).await?;
    let migrations = match migrate::status(&client).await {
        Ok(migrations) => migrations,
        Err(error) => return Err(open::outdated(&config, &client, error).await),
    };
    let applied = migrations.iter().filter(|it| it.applied_at.is_some()).count();
    let known = migrations.len();
    let broken = |error| open::broken(&place, &error);
    let select = "SELECT current_setting('server_version'), current_setting('server_encoding'),
        current_setting('synchronous_commit'), current_setting('fsync')";
    let row = client.query_one(select, &[]).await.map_err(broken)?;
    let text = |at: usize| row.try_get::<_, String>(at).map_err(broken);
    let (version, encoding, synchronous_commit, fsync) = (text(0)?, text(1)?, text(2)?, text(3)?);
    let mut addresses = Vec::new();
    if applied == known {
        let select = "SELECT address FROM duly.node
            WHERE address IS NOT NULL AND checked_at > duly.now() - 60000 ORDER BY started_at, id";
        for row in client.query(select, &[]).await.map_err(broken)? {
            addresses.push(row.try_get(0).map_err(broken)?);
        }
    }
    Ok(Inspection {
        place,
        version,
        encoding,
        synchronous_commit,
        fsync,
        applied,
        known,
        addresses,
    })
}
