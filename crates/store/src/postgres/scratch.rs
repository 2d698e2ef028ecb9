//! Databases for tests: one per case, copied from an empty one and dropped with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duly_core::ports::clock::Clock;
use duly_core::ports::store::Rules;
use tokio_postgres::{Client, NoTls};

use super::{PostgresStore, migrate, tls};

/// A database that is dropped in the end.
pub struct Scratch {
    server: String,
    name: String,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    /// An empty database on this server. Its schema is there, and the days around the clock's time.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn new(server: &str, clock: Arc<dyn Clock>) -> Self {
        let (client, _driver) = connect(server).await;
        let template = template(&client, server, clock).await;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("duly_test_{}_{number}", std::process::id());
        let make = format!("CREATE DATABASE {name} TEMPLATE {template}");
        client.batch_execute(&make).await.expect("a test may make a database");
        Self { server: server.to_owned(), name }
    }

    /// Its address. A commit there does not wait for the disk, which is the server's affair.
    pub fn url(&self) -> String {
        let url = in_database(&self.server, &self.name);
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}options=-c%20synchronous_commit%3Doff")
    }
}

impl Drop for Scratch {
    /// Drops the database, whoever still has it open. On a thread of its own: a test that fails has
    /// no other way to wait.
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            runtime.expect("a runtime").block_on(async {
                let (client, _driver) = connect(&server).await;
                client.batch_execute(&drop).await.expect("a test may drop its database");
            });
        });
        if dropping.join().is_err() {
            tracing::error!(name = self.name, "a database of a test is left behind");
        }
    }
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

async fn connect(server: &str) -> (Client, tokio::task::JoinSet<()>) {
    let config = tls::parse(server).expect("an address");
    let (client, connection) = config.connect(NoTls).await.expect("the server answers");
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (client, driver)
}

fn in_database(server: &str, name: &str) -> String {
    let (place, rest) = server.split_once('?').map_or((server, None), |(a, b)| (a, Some(b)));
    let end = place.rfind('/').expect("an address names a database");
    let options = rest.map(|rest| format!("?{rest}")).unwrap_or_default();
    format!("{}/{name}{options}", &place[..end])
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
