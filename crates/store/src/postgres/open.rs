//! Opening the database: what must be so before a node can use it.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{error, migrate, pool, tls};

/// The oldest server that will do.
const OLDEST: i32 = 140_000;

/// Why the database cannot be opened; the text says what to do. It never holds the password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address makes no sense.
    #[error("not an address such as postgres://user:password@host:5432/database: {0}")]
    Address(String),
    /// Nobody answers there, or not as a server of PostgreSQL would.
    #[error(
        "cannot reach PostgreSQL at {place}: {reason}; is it running, and is this its address?"
    )]
    Unreachable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// The server wants another user or password, or another kind of connection.
    #[error("PostgreSQL at {place} refuses the login: {reason}; check user and password")]
    Refused {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// There is no such database.
    #[error("there is no such database at {place}: {reason}; make it with CREATE DATABASE")]
    NoDatabase {
        /// Where.
        place: String,
        /// Which.
        reason: String,
    },
    /// The server or the database cannot be used as it is.
    #[error("{0}")]
    Unsuitable(String),
    /// Written by a newer version.
    #[error("{0}; update this one or use another database")]
    Newer(String),
    /// Anything else.
    #[error("cannot open the database at {place}: {reason}")]
    Database {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
}

/// What an address means, and how to connect.
pub(super) fn address(url: &str) -> Result<(Config, MakeRustlsConnect), OpenError> {
    let asked = tls::parse(url).map_err(|error| OpenError::Address(error::chain(&error)))?;
    let connector = tls::connector();
    let connector = connector.map_err(|error| OpenError::Unsuitable(error.to_string()))?;
    Ok((pool::configure(asked), connector))
}

/// Makes sure that the database can be used, and brings its schema up to date. Answers how many
/// scripts that took.
pub(super) async fn prepare(config: &Config, tls: &MakeRustlsConnect) -> Result<usize, OpenError> {
    let (mut client, _driver) = connect(config, tls).await?;
    migrate::up(&mut client).await.map_err(|error| outdated(config, error))
}

/// A connection to a database that can be used, and what drives it.
pub(super) async fn connect(
    config: &Config,
    tls: &MakeRustlsConnect,
) -> Result<(Client, impl Sized + use<>), OpenError> {
    let place = place(config);
    let connected = config.connect(tls.clone()).await;
    let (client, connection) = connected.map_err(|error| refused(&place, &error))?;
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(connection);
    inspect(&client).await.map_err(|error| match error {
        Inspection::Unsuitable(reason) => OpenError::Unsuitable(reason),
        Inspection::Postgres(error) => broken(&place, &error),
    })?;
    Ok((client, driver))
}

/// Why the schema cannot be used.
pub(super) fn outdated(config: &Config, error: migrate::Error) -> OpenError {
    match error {
        migrate::Error::Newer(newer) => OpenError::Newer(newer.to_string()),
        migrate::Error::Postgres(error) => broken(&place(config), &error),
    }
}

enum Inspection {
    Unsuitable(String),
    Postgres(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Inspection {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

async fn inspect(client: &Client) -> Result<(), Inspection> {
    let select = "SELECT current_setting('server_version_num')::int,
            current_setting('server_version'), current_setting('server_encoding'),
            pg_is_in_recovery()";
    let row = client.query_one(select, &[]).await?;
    let (version, name): (i32, &str) = (row.try_get(0)?, row.try_get(1)?);
    if version < OLDEST {
        let oldest = OLDEST / 10_000;
        let reason = format!("the server is PostgreSQL {name}; duly needs {oldest} or newer");
        return Err(Inspection::Unsuitable(reason));
    }
    let encoding: &str = row.try_get(2)?;
    if encoding != "UTF8" {
        let reason = format!("the database's encoding is {encoding}; duly needs UTF8");
        return Err(Inspection::Unsuitable(reason));
    }
    if row.try_get(3)? {
        let reason = "the server is a replica, which takes no writes; use the primary".to_owned();
        return Err(Inspection::Unsuitable(reason));
    }
    Ok(())
}

fn refused(place: &str, error: &tokio_postgres::Error) -> OpenError {
    let (place, reason) = (place.to_owned(), error::chain(error));
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            OpenError::Refused { place, reason }
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            OpenError::NoDatabase { place, reason }
        }
        // So it says on a full disk, for example.
        Some(code) if *code == SqlState::INTERNAL_ERROR => {
            let reason = format!("{reason}; see the server's log and the free space of its disk");
            OpenError::Database { place, reason }
        }
        Some(_) => OpenError::Database { place, reason: error::explain(error) },
        None => OpenError::Unreachable { place, reason },
    }
}

pub(super) fn broken(place: &str, error: &tokio_postgres::Error) -> OpenError {
    let place = place.to_owned();
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            let reason = error::chain(error);
            OpenError::Unsuitable(format!(
                "the user may not set up the database at {place}: {reason}; \
                 let its owner do it, or grant CREATE on it"
            ))
        }
        _ => OpenError::Database { place, reason: error::explain(error) },
    }
}

/// Where the database is, without the password.
pub(super) fn place(config: &Config) -> String {
    use tokio_postgres::config::Host;
    let ports = config.get_ports();
    let host = |(number, host): (usize, &Host)| {
        let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let hosts: Vec<_> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{database}", hosts.join(","))
}
