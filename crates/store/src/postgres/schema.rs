//! The schema of a database by itself, for `duly migrate`.

use super::migrate;
pub use super::migrate::Migration;
use super::open::{self, OpenError};

/// Brings the schema up to date, as opening the store does. Answers how many migrations that took.
pub async fn up(url: &str) -> Result<usize, OpenError> {
    let (config, tls) = open::address(url)?;
    open::prepare(&config, &tls).await
}

/// The migrations of the schema, in their order. Changes nothing.
pub async fn status(url: &str) -> Result<Vec<Migration>, OpenError> {
    let (config, tls) = open::address(url)?;
    let (client, _driver) = open::connect(&config, &tls).await?;
    match migrate::status(&client).await {
        Ok(migrations) => Ok(migrations),
        Err(error) => Err(open::outdated(&config, &client, error).await),
    }
}

/// Gives the roles of the schema their rights, as far as its owner asks. Answers which roles are
/// missing.
pub async fn grant_rights(url: &str) -> Result<Vec<String>, OpenError> {
    let (config, tls) = open::address(url)?;
    let (client, _driver) = open::connect(&config, &tls).await?;
    let rights = "SELECT CASE WHEN pg_has_role(nspowner, 'USAGE') THEN duly.grant_rights()
            ELSE '{}' END
        FROM pg_namespace WHERE nspname = 'duly'";
    let row = client.query_one(rights, &[]).await;
    let missing = row.and_then(|row| row.try_get(0));
    missing.map_err(|error| open::broken(&open::place(&config), &error))
}
