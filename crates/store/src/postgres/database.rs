//! Databases of their own on a server, for benchmarks.

use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::open::{self, OpenError};

/// A database that its creator removes again.
pub struct Database {
    server: (Config, MakeRustlsConnect),
    name: String,
    url: String,
}

impl Database {
    /// Makes an empty one on the server at this address. Its user must have the right to.
    pub async fn make(server: &str, name: &str) -> Result<Self, OpenError> {
        let database = Self {
            server: open::address(server)?,
            name: name.to_owned(),
            url: in_database(server, name),
        };
        database
            .order(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"))
            .await?;
        Ok(database)
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Removes it, even if connections are open.
    pub async fn remove(&self) -> Result<(), OpenError> {
        self.order(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }

    /// Has the server write everything that it keeps in memory, and the planner look at the tables.
    pub async fn settle(&self) -> Result<(), OpenError> {
        let (config, tls) = open::address(&self.url)?;
        let (client, _driver) = open::connect(&config, &tls).await?;
        let orders = ["VACUUM (ANALYZE)", "CHECKPOINT"];
        for order in orders {
            client.batch_execute(order).await.map_err(|it| open::broken(&self.name, &it))?;
        }
        Ok(())
    }

    /// How many bytes the server has ever written to its log, for all databases.
    pub async fn log_bytes(&self) -> Result<u64, OpenError> {
        let (client, _driver) = open::connect(&self.server.0, &self.server.1).await?;
        log_bytes(&client).await.map_err(|it| open::broken(&self.name, &it))
    }

    /// Begins a transaction and leaves it open.
    pub async fn hold(&self, hold: Hold) -> Result<Held, OpenError> {
        let (config, tls) = open::address(&self.url)?;
        let (client, driver) = open::connect(&config, &tls).await?;
        let begin = match hold {
            Hold::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
            Hold::Transaction => "BEGIN; SELECT txid_current()",
        };
        for order in ["SET idle_in_transaction_session_timeout = 0", begin] {
            client.batch_execute(order).await.map_err(|it| open::broken(&self.name, &it))?;
        }
        Ok(Held { _client: client, _driver: Box::new(driver) })
    }

    async fn order(&self, order: &str) -> Result<(), OpenError> {
        let (client, _driver) = open::connect(&self.server.0, &self.server.1).await?;
        client.batch_execute(order).await.map_err(|it| open::broken(&self.name, &it))
    }
}

/// What a forgotten transaction has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It has looked at everything, and could look again.
    Snapshot,
    /// It has a number, as one that has written something.
    Transaction,
}

/// A transaction that stays open until this is dropped.
pub struct Held {
    _client: Client,
    _driver: Box<dyn Send + Sync>,
}

/// How many bytes the server has ever written to its log.
pub(super) async fn log_bytes(client: &Client) -> Result<u64, tokio_postgres::Error> {
    let select = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    let bytes: i64 = client.query_one(select, &[]).await?.try_get(0)?;
    Ok(bytes.unsigned_abs())
}

/// The release of the server at this address.
pub async fn version(server: &str) -> Result<String, OpenError> {
    let (config, tls) = open::address(server)?;
    let (client, _driver) = open::connect(&config, &tls).await?;
    let found = client.query_one("SELECT current_setting('server_version')", &[]).await;
    let name = found.and_then(|row| row.try_get(0));
    name.map_err(|error| open::broken(&open::place(&config), &error))
}

/// The same address with another database.
pub(super) fn in_database(server: &str, name: &str) -> String {
    let (place, rest) = server.split_once('?').map_or((server, None), |(a, b)| (a, Some(b)));
    let options = rest.map(|rest| format!("?{rest}")).unwrap_or_default();
    let host = place.find("://").map_or(0, |scheme| scheme + 3);
    let end = place[host..].find('/').map_or(place.len(), |slash| host + slash);
    format!("{}/{name}{options}", &place[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_has_the_same_server() {
        let address = |server| in_database(server, "other");
        assert_eq!(address("postgres://a:b@h:1/one"), "postgres://a:b@h:1/other");
        assert_eq!(address("postgres://h"), "postgres://h/other");
        assert_eq!(address("postgres://h/one?options=-c%20x"), "postgres://h/other?options=-c%20x");
    }
}
