//! Connections to the server: a few, each with the settings that the statements count on.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Client, Manager, ManagerConfig, RecyclingMethod, Runtime};
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock;
use parking_lot::RwLock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{Fault, Result};
use super::migrate::{self, Newer};
use super::snapshot::Snapshot;

/// More would only fight for the server's cores; batches, not connections, make it fast.
pub(super) const CONNECTIONS: usize = 6;
/// How long a call waits for a connection.
const WAIT: Duration = Duration::from_secs(10);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// How long the other end of a connection may be silent on the wire. A server that has lost its
/// power or its network says no farewell; without this a statement would wait for it for hours.
const SILENCE: Duration = Duration::from_secs(10);
/// What the driver takes for it unless the address says otherwise.
const USUAL_SILENCE: Duration = Duration::from_secs(2 * 60 * 60);

/// What every connection goes by.
///
/// A commit is on disk before it is answered. A statement that waits or runs for too long fails, so
/// that no lock is held for ever. Tables that were empty when a plan was made are soon full, so
/// plans go by the index and by the values at hand: a plan for any value would visit every day.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("statement_timeout", "30s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "30s"),
    ("random_page_cost", "1.1"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_custom_plan"),
    ("client_min_messages", "warning"),
];

/// The connections of one node.
pub(super) struct Pool {
    inner: deadpool_postgres::Pool,
    /// What tests go by instead of the server's clock.
    clock: Option<Arc<dyn Clock>>,
    /// Whether the node's user may read as `duly_query`.
    reads_as_query: bool,
    /// Why nothing may be asked of the server any more.
    outdated: RwLock<Option<Newer>>,
    /// Whether [`crate::planted::PlantedBug::ForgottenTenant`] is switched on.
    #[cfg(feature = "planted-bugs")]
    planted: std::sync::atomic::AtomicBool,
}

impl Pool {
    pub(super) fn new(
        config: &Config,
        tls: MakeRustlsConnect,
        clock: Option<Arc<dyn Clock>>,
        reads_as_query: bool,
    ) -> Result<Self> {
        // What was left open by a caller that went away is rolled back before the next statement.
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(config.clone(), tls, ManagerConfig { recycling_method });
        let inner = deadpool_postgres::Pool::builder(manager)
            .max_size(CONNECTIONS)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(CONNECT))
            .recycle_timeout(Some(CONNECT))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Fault::NoConnection(error.to_string()))?;
        Ok(Self {
            inner,
            clock,
            reads_as_query,
            outdated: RwLock::default(),
            #[cfg(feature = "planted-bugs")]
            planted: std::sync::atomic::AtomicBool::new(false),
        })
    }

    /// A connection, until it is dropped; none to a database that is for newer nodes.
    pub(super) async fn get(&self) -> Result<Client> {
        if let Some(newer) = *self.outdated.read() {
            return Err(newer.into());
        }
        self.connect().await
    }

    /// Looks whether the database is still for this node; if not, nothing is asked of it from then
    /// on: who knows what it would understand. Answers with the connection it looked through.
    pub(super) async fn look_at_schema(&self) -> Result<Client> {
        let client = self.connect().await?;
        let newer = migrate::newer(&client).await?;
        *self.outdated.write() = newer;
        newer.map_or(Ok(client), |newer| Err(newer.into()))
    }

    async fn connect(&self) -> Result<Client> {
        let client = self.inner.get().await?;
        if let Some(clock) = &self.clock {
            let now = clock.now().millis();
            client.batch_execute(&format!("SET duly.now_ms = {now}")).await?;
        }
        Ok(client)
    }

    /// What a tenant has at one moment, as this connection reads it.
    pub(super) async fn snapshot<'a>(
        &self,
        client: &'a mut Client,
        tenant: &TenantName,
    ) -> Result<Snapshot<'a>> {
        #[cfg(feature = "planted-bugs")]
        if self.planted.load(std::sync::atomic::Ordering::Relaxed) {
            return Snapshot::take(client).await;
        }
        if self.reads_as_query {
            Snapshot::of_tenant(client, tenant).await
        } else {
            Snapshot::take(client).await
        }
    }

    #[cfg(feature = "planted-bugs")]
    pub(super) fn plant_forgotten_tenant(&self) {
        self.planted.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Rows of one statement that needs no transaction.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let client = self.get().await?;
        let statement = client.prepare_cached(statement).await?;
        Ok(client.query(&statement, parameters).await?)
    }

    /// What tests go by instead of the server's clock.
    pub(super) fn clock(&self) -> Option<&Arc<dyn Clock>> {
        self.clock.as_ref()
    }
}

/// The same address with the settings of every connection.
pub(super) fn configure(mut config: Config) -> Config {
    let own = SETTINGS.iter().map(|(name, value)| format!("-c {name}={value}"));
    let asked = config.get_options().map(str::to_owned);
    // What the address says comes last and counts.
    let options: Vec<_> = own.chain(asked).collect();
    config.options(options.join(" "));
    if config.get_application_name().is_none() {
        config.application_name("duly");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_keepalives_idle() == USUAL_SILENCE {
        config.keepalives_idle(SILENCE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(SILENCE / 4);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_notices_a_silent_server_unless_the_address_says_when() {
        let of = |url: &str| configure(url.parse().unwrap());
        let plain = of("postgres://duly@db/duly");
        let noticed = (plain.get_tcp_user_timeout().copied(), plain.get_keepalives_idle());
        assert_eq!(noticed, (Some(SILENCE), SILENCE));
        assert_eq!(plain.get_keepalives_interval(), Some(SILENCE / 4));
        let asked = of("postgres://duly@db/duly?tcp_user_timeout=60&keepalives_idle=90");
        assert_eq!(asked.get_tcp_user_timeout(), Some(&Duration::from_secs(60)));
        assert_eq!(asked.get_keepalives_idle(), Duration::from_secs(90));
    }
}
