//! `scripts/services`: what `make services` and `make cluster` start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use duly_testkit::report;
use duly_testkit::wait::within;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// The services below a directory of their own; what still runs at the end is stopped.
struct Services {
    home: PathBuf,
}

impl Services {
    /// Runs one of its commands and returns what it prints.
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(root.join("scripts/services"));
        command.arg("--volatile").args(arguments).env("DULY_SERVICES_HOME", &self.home);
        let ended = within("scripts/services ends", command.output()).await??;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        if !ended.status.success() {
            bail!("scripts/services {arguments:?}: {said}");
        }
        Ok(String::from_utf8(ended.stdout)?)
    }

    /// Where the database is.
    async fn postgres(&self) -> anyhow::Result<String> {
        let env = self.run(&["env"]).await?;
        assert!(!env.contains("REDIS"), "Redis was not asked for: {env}");
        let line = env.lines().find_map(|line| line.strip_prefix("DULY_TEST_POSTGRES="));
        Ok(line.context("no address")?.to_owned())
    }
}

/// The schema in which a table of an application lands.
async fn schema_of_new_table(url: &str, table: &str) -> anyhow::Result<String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS duly").await?;
    client.batch_execute(&format!("CREATE TABLE {table} (id bigint)")).await?;
    let select = "SELECT schemaname::text FROM pg_tables WHERE tablename = $1";
    Ok(client.query_one(select, &[&table]).await?.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn services_keep_their_port_and_applications_get_the_public_schema() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    // PostgreSQL does not run as root, and another user must reach its data.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let services = Services { home: folder.path().join("services") };
    if let Err(error) = services.run(&["start"]).await {
        if error.to_string().contains("missing: postgresql") {
            return report::skip("scripts/services (PostgreSQL is missing)", "install it");
        }
        return Err(error);
    }
    let outcome = try_services(&services).await;
    services.run(&["stop"]).await?;
    outcome
}

async fn try_services(services: &Services) -> anyhow::Result<()> {
    let url = services.postgres().await?;
    assert_eq!(schema_of_new_table(&url, "orders").await?, "public");
    services.run(&["stop"]).await?;
    services.run(&["start"]).await?;
    assert_eq!(services.postgres().await?, url);
    assert_eq!(schema_of_new_table(&url, "invoices").await?, "public");
    assert!(!services.home.join("redis").exists(), "Redis was started, and nothing needs it");
    Ok(())
}
