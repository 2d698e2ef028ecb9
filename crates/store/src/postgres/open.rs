//! Opening the database: what must be so before a node can use it.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::Fault;
use super::{error, migrate, pool, tls};

/// The oldest server that will do.
const OLDEST: i32 = 140_000;

/// Why the database cannot be opened; the text says what to do. It never holds the password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address makes no sense.
    #[error("not an address such as postgres://user:password@host:5432/database: {0}")]
    Address(String),
    /// Nothing answers there, or not as a PostgreSQL server would.
    #[error(
        "cannot reach PostgreSQL at {place}: {reason}; is it running, and is this its address?"
    )]
    Unreachable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// It cannot be spoken to in secret.
    #[error(
        "no safe connection to PostgreSQL at {place}: {reason}; turn on ssl there and let this \
         machine trust its certificate, or add ?sslmode=disable on a network that you trust"
    )]
    Unsafe {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// The server wants another user or password, or another kind of connection.
    #[error(
        "PostgreSQL at {place} refuses the login: {reason}; check user and password here, and \
         pg_hba.conf and the right to CONNECT there"
    )]
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
    /// The user may not do what a node has to.
    #[error("the user may not {what} at {place}: {reason}; {advice}")]
    Forbidden {
        /// What.
        what: &'static str,
        /// Where.
        place: String,
        /// Why.
        reason: String,
        /// What helps.
        advice: &'static str,
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
    match migrate::up(&mut client).await {
        Ok(applied) => Ok(applied),
        Err(error) => Err(outdated(config, &client, error).await),
    }
}

/// Whether this user may read as `duly_query`, which sees the rows of one tenant only. The condition of
/// each statement limits it to the tenant, too; so a node without the right goes on.
pub(super) async fn may_read_as_query(
    config: &Config,
    tls: &MakeRustlsConnect,
) -> Result<bool, OpenError> {
    let (client, _driver) = connect(config, tls).await?;
    let may = "SELECT coalesce(pg_has_role(to_regrole('duly_query'), 'MEMBER'), false)
        AND has_table_privilege(to_regrole('duly_query'), 'duly.task', 'SELECT')";
    let row = client.query_one(may, &[]).await;
    let may: Result<bool, _> = row.and_then(|row| row.try_get(0));
    let may = may.map_err(|error| broken(&place(config), &error))?;
    if !may {
        tracing::warn!(
            "this user of the database may not read as duly_query, so row-level security does not \
             guard what tenants read; let an administrator GRANT duly_query TO duly_engine"
        );
    }
    Ok(may)
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
    let server = inspect(&client).await.map_err(|error| broken(&place, &error))?;
    server.check().map_err(OpenError::Unsuitable)?;
    Ok((client, driver))
}

/// Why the schema cannot be used.
pub(super) async fn outdated(config: &Config, client: &Client, error: migrate::Error) -> OpenError {
    let place = place(config);
    match error {
        migrate::Error::Newer(newer) => OpenError::Newer(newer.to_string()),
        migrate::Error::Changed(changed) => OpenError::Unsuitable(changed.to_string()),
        migrate::Error::Postgres(error) if is_forbidden(&error) => {
            let reason = error::chain(&error);
            if migrate::is_begun(client).await {
                forbidden(place, reason)
            } else {
                barred(place, reason)
            }
        }
        migrate::Error::Postgres(error) => broken(&place, &error),
    }
}

/// What has to be known of a server before anything else.
struct Server {
    /// Such as 150004.
    version: i32,
    /// The same, as people say it.
    name: String,
    encoding: String,
    is_replica: bool,
}

async fn inspect(client: &Client) -> Result<Server, tokio_postgres::Error> {
    let select = "SELECT current_setting('server_version_num')::int,
            current_setting('server_version'), current_setting('server_encoding'),
            pg_is_in_recovery()";
    let row = client.query_one(select, &[]).await?;
    Ok(Server {
        version: row.try_get(0)?,
        name: row.try_get(1)?,
        encoding: row.try_get(2)?,
        is_replica: row.try_get(3)?,
    })
}

impl Server {
    fn check(&self) -> Result<(), String> {
        let Self { version, name, encoding, is_replica } = self;
        if *version < OLDEST {
            return Err(format!("the server is PostgreSQL {name}; {}", needed()));
        }
        if encoding != "UTF8" {
            return Err(format!(
                "the database's encoding is {encoding}; make one with ENCODING 'UTF8' for duly"
            ));
        }
        if *is_replica {
            return Err(
                "the server is a replica, which takes no writes; use the primary".to_owned()
            );
        }
        Ok(())
    }
}

fn needed() -> String {
    format!("duly needs {} or newer", OLDEST / 10_000)
}

fn refused(place: &str, error: &tokio_postgres::Error) -> OpenError {
    let (place, reason) = (place.to_owned(), error::chain(error));
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                || *code == SqlState::INSUFFICIENT_PRIVILEGE =>
        {
            OpenError::Refused { place, reason }
        }
        // It does not know a setting of ours.
        Some(code) if *code == SqlState::UNDEFINED_OBJECT => OpenError::Unsuitable(format!(
            "the server at {place} is too old: {reason}; {}",
            needed()
        )),
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            OpenError::NoDatabase { place, reason }
        }
        // So it says on a full disk, for example.
        Some(code) if *code == SqlState::INTERNAL_ERROR => {
            let reason = format!("{reason}; see the server's log and the free space of its disk");
            OpenError::Database { place, reason }
        }
        Some(_) => OpenError::Database { place, reason: error::explain(error) },
        // The driver has no other way to distinguish these.
        None if reason.starts_with("error performing TLS handshake") => {
            OpenError::Unsafe { place, reason }
        }
        None if reason.starts_with("invalid configuration") => OpenError::Refused { place, reason },
        None => OpenError::Unreachable { place, reason },
    }
}

pub(super) fn broken(place: &str, error: &tokio_postgres::Error) -> OpenError {
    OpenError::Database { place: place.to_owned(), reason: error::explain(error) }
}

/// The same of what a node has asked.
pub(super) fn faulty(place: String, fault: &Fault) -> OpenError {
    if fault.is_forbidden() {
        return forbidden(place, fault.to_string());
    }
    OpenError::Database { place, reason: fault.explain() }
}

fn is_forbidden(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// The tables are there, but not for this user.
fn forbidden(place: String, reason: String) -> OpenError {
    let advice = "let their owner run `duly migrate up` and GRANT duly_engine TO this user";
    OpenError::Forbidden { what: "use the tables of duly", place, reason, advice }
}

/// They are not there.
fn barred(place: String, reason: String) -> OpenError {
    let advice = "let its owner run `duly migrate up`, or GRANT CREATE on it TO this user";
    OpenError::Forbidden { what: "set up the database", place, reason, advice }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_will_not_do_is_told_from_one_that_will() {
        let server = |version, encoding: &str, is_replica| Server {
            version,
            name: "13.4".to_owned(),
            encoding: encoding.to_owned(),
            is_replica,
        };
        assert_eq!(server(OLDEST, "UTF8", false).check(), Ok(()));
        for (unfit, words) in [
            (server(130_004, "UTF8", false), "PostgreSQL 13.4; duly needs 14 or newer"),
            (server(OLDEST, "LATIN1", false), "LATIN1"),
            (server(OLDEST, "UTF8", true), "use the primary"),
        ] {
            let reason = unfit.check().unwrap_err();
            assert!(reason.contains(words), "{reason}");
        }
    }
}
