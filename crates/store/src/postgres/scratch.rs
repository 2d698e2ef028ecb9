//! Databases for tests. Making one takes a tenth of a second, so they are used again: a test holds
//! one by a lock of the server, which goes with its connection, and empties it first.

use std::sync::Arc;

use duly_core::ports::clock::Clock;
use duly_core::ports::store::Rules;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::database::in_database;
use super::{PostgresStore, migrate, tls};

/// A database that no other test uses meanwhile.
pub struct Scratch {
    url: String,
    /// Holds the lock.
    _client: Client,
    _driver: JoinSet<()>,
}

/// Tests with more days leave a database that slows the next one down.
const DAYS: i64 = 24;

/// Everything that is in it, but not how it is made.
const EMPTY: &str = "DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT c.oid::regclass AS name FROM pg_catalog.pg_class c
               WHERE c.relnamespace = 'duly'::regnamespace AND c.relkind IN ('r', 'p')
                 AND NOT c.relispartition AND c.relname NOT IN ('migration', 'functions')
    LOOP
        EXECUTE format('DELETE FROM %s', one.name);
    END LOOP;
END
$$";

impl Scratch {
    /// An empty database on this server. Its schema is there, and the days around the clock's time.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn new(server: &str, clock: Arc<dyn Clock>) -> Self {
        Self::make(server, clock, true).await
    }

    /// The same, with no traces of earlier tests: days that they made, and sizes by which statements
    /// are planned.
    #[cfg(test)]
    pub(super) async fn fresh(server: &str, clock: Arc<dyn Clock>) -> Self {
        Self::make(server, clock, false).await
    }

    async fn make(server: &str, clock: Arc<dyn Clock>, may_be_used: bool) -> Self {
        let (client, driver) = connect(server).await;
        let template = template(&client, server, clock).await;
        let name = hold(&client).await;
        let url = in_database(server, &name);
        let is_there = may_be_used && exists(&client, &name).await;
        if !(is_there && empty(&client, &name, &url).await) {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            client.batch_execute(&drop).await.expect("a test may drop a database");
            let make = format!("CREATE DATABASE {name} TEMPLATE {template}");
            client.batch_execute(&make).await.expect("a test may make a database");
        }
        Self { url, _client: client, _driver: driver }
    }

    /// Its address. A commit there does not wait for the disk, which is the server's affair.
    pub fn url(&self) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{mark}options=-c%20synchronous_commit%3Doff", self.url)
    }

    /// A connection of the test's own, and what drives it.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn connect(&self) -> (Client, JoinSet<()>) {
        connect(&self.url()).await
    }
}

/// Takes the first free name.
async fn hold(client: &Client) -> String {
    let lock =
        "SELECT n FROM generate_series(1, 1000) n WHERE pg_try_advisory_lock(7222, n) LIMIT 1";
    let number: i32 = client.query_one(lock, &[]).await.expect("a lock").get(0);
    format!("duly_test_{}_{number}", migrate::fingerprint())
}

async fn exists(client: &Client, name: &str) -> bool {
    let select = "SELECT count(*) > 0 FROM pg_database WHERE datname = $1";
    client.query_one(select, &[&name]).await.expect("a query").get(0)
}

/// Ends what an earlier test has left there and removes its rows; not if it has changed more.
async fn empty(client: &Client, name: &str, url: &str) -> bool {
    let end =
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = $1";
    client.query_one(end, &[&name]).await.expect("a test may end its connections");
    let (client, _driver) = connect(url).await;
    let select = "SELECT (SELECT max(version) FROM duly.migration),
        (SELECT count(*) FROM pg_catalog.pg_inherits WHERE inhparent = 'duly.task'::regclass),
        EXISTS (SELECT FROM pg_catalog.pg_event_trigger)";
    let Ok(row) = client.query_one(select, &[]).await else { return false };
    let (version, days): (Option<i32>, i64) = (row.get(0), row.get(1));
    let is_whole = version == Some(migrate::newest()) && !row.get::<_, bool>(2);
    is_whole && days <= DAYS && client.batch_execute(EMPTY).await.is_ok()
}

/// The empty database that others are copied from, made by whichever test is first to need this
/// version of it.
async fn template(client: &Client, server: &str, clock: Arc<dyn Clock>) -> String {
    let name = format!("duly_template_{}", migrate::fingerprint());
    let exists = "SELECT count(*) > 0 FROM pg_database WHERE datname = $1 AND datistemplate";
    let made: bool = client.query_one(exists, &[&name]).await.expect("a query").get(0);
    if made {
        return name;
    }
    client.batch_execute("SELECT pg_advisory_lock(7221)").await.expect("a lock");
    let made: bool = client.query_one(exists, &[&name]).await.expect("a query").get(0);
    if !made {
        let make = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        client.batch_execute(&make).await.expect("a test may drop a database");
        let make = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        client.batch_execute(&make).await.expect("a test may make a database");
        let url = in_database(server, &name);
        let store = PostgresStore::open_at(&url, Rules::default(), clock).await;
        drop(store.expect("an empty database can be opened"));
        let done = format!("ALTER DATABASE {name} IS_TEMPLATE true");
        client.batch_execute(&done).await.expect("a test may mark a database");
    }
    client.batch_execute("SELECT pg_advisory_unlock(7221)").await.expect("an unlock");
    name
}

async fn connect(server: &str) -> (Client, JoinSet<()>) {
    let config = tls::parse(server).expect("an address");
    let (client, connection) = config.connect(NoTls).await.expect("the server answers");
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (client, driver)
}

/// The server that tests may use, if there is one. Where everything must be tested, there must be.
///
/// # Panics
/// When there is none and `CI` is `true`.
#[expect(clippy::disallowed_methods, reason = "tests are told by the environment where it is")]
pub fn server() -> Option<String> {
    use std::io::Write as _;
    static SAID: std::sync::Once = std::sync::Once::new();
    let server = std::env::var("DULY_TEST_POSTGRES").ok();
    if server.is_none() {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "DULY_TEST_POSTGRES names no server");
        let note = "SKIPPED PostgreSQL: DULY_TEST_POSTGRES names no server";
        // Not by a macro: those are silent while a test passes.
        SAID.call_once(|| drop(writeln!(std::io::stderr().lock(), "{note}")));
    }
    server
}
