//! The schema of a database by itself, for whoever changes it before the nodes do.

use super::migrate;
pub use super::migrate::Migration;
use super::open::{self, OpenError};

/// Brings the schema up to date, as opening the store does. Answers how many scripts that took.
pub async fn up(url: &str) -> Result<usize, OpenError> {
    let (config, tls) = open::address(url)?;
    open::prepare(&config, &tls).await
}

/// The scripts that make the schema, in their order. Changes nothing.
pub async fn status(url: &str) -> Result<Vec<Migration>, OpenError> {
    let (config, tls) = open::address(url)?;
    let (client, _driver) = open::connect(&config, &tls).await?;
    migrate::status(&client).await.map_err(|error| open::outdated(&config, error))
}
