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

/// What the user of an address may do beyond what a node needs: its queries could change the schema, and
/// row-level security would not hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It is a superuser.
    Superuser,
    /// It owns the tables.
    Owner,
}

/// The user of an address, and what it may do beyond what a node needs. An owner is also one who would
/// become it by creating the schema.
pub async fn privilege(url: &str) -> Result<(String, Option<Privilege>), OpenError> {
    let (config, tls) = open::address(url)?;
    let (client, _driver) = open::connect(&config, &tls).await?;
    let select = "SELECT current_user::text, rolsuper, coalesce((
            SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'duly'), true)
        FROM pg_roles WHERE rolname = current_user";
    let row = client.query_one(select, &[]).await;
    let read = row.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    let (user, is_superuser, is_owner): (String, bool, bool) =
        read.map_err(|error| open::broken(&open::place(&config), &error))?;
    let owner = is_owner.then_some(Privilege::Owner);
    Ok((user, is_superuser.then_some(Privilege::Superuser).or(owner)))
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
