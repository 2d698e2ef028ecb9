//! What a person wants to know of a database that nodes share, before or while they use it.

use super::open::{self, OpenError};
use super::{error, migrate, tls};

/// A database as it was found.
#[derive(Clone, Debug)]
pub struct Survey {
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
    /// How many scripts of the schema were applied; nothing if there is no schema yet.
    pub applied: usize,
    /// How many there are.
    pub known: usize,
    /// Where nodes listen that gave a sign of life within the last minute.
    pub addresses: Vec<String>,
}

/// Looks at a database and changes nothing. What makes it useless for any node is an error.
pub async fn survey(url: &str) -> Result<Survey, OpenError> {
    let (mut config, tls) = open::address(url)?;
    // Nodes set some settings themselves; here those of the server are of interest.
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
    Ok(Survey { place, version, encoding, synchronous_commit, fsync, applied, known, addresses })
}
