//! A node that cannot start says what to do, and never shows the password.

use std::path::Path;

use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::command::{self, Ended};
use duly_testkit::keys::Keys;
use duly_testkit::node::Node;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::DULY;

async fn serve(store: &str) -> anyhow::Result<Ended> {
    let line = ["serve", "--insecure", "--listen", "127.0.0.1:0", "--store", store];
    command::run(Path::new(DULY), &line).await
}

/// It must fail with this code and these words.
pub(crate) async fn fails(store: &str, code: i32, words: &[&str]) -> anyhow::Result<()> {
    let ended = serve(store).await?;
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stdout, "", "no address was printed");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in {:?}", ended.stderr);
    }
    assert!(!ended.stderr.contains("secret"), "{:?}", ended.stderr);
    Ok(())
}

pub(crate) async fn order(url: &str, sql: &str) -> anyhow::Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    Ok(client.batch_execute(sql).await?)
}

/// The same address for another user.
pub(crate) fn with_user(url: &str, user: &str) -> String {
    let (_, rest) = url.split_once('@').expect("an address names a user");
    format!("postgres://{user}@{rest}")
}

pub(crate) async fn database() -> Option<(Scratch, String)> {
    let server = scratch::server()?;
    let scratch = Scratch::new(&server, std::sync::Arc::new(SystemClock::default())).await;
    let url = scratch.url();
    Some((scratch, url))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_it_says_where_it_looked() -> anyhow::Result<()> {
    fails("postgres://duly:secret@127.0.0.1:1/duly", 1, &["127.0.0.1:1/duly", "is it running"])
        .await?;
    fails("postgres://duly:secret@db:port/duly", 2, &["not an address such as postgres://"])
        .await?;
    fails("mysql://duly:secret@db/duly", 2, &["the store must be postgres://"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_or_a_database_that_does_not_exist_is_named() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let stranger = with_user(&url, "unknown_user:secret");
    fails(&stranger, 1, &["refuses the login", "unknown_user", "check user"]).await?;
    let (server, _) = url.rsplit_once('/').expect("an address names a database");
    let missing = format!("{server}/no_such_database");
    fails(&missing, 1, &["no_such_database", "CREATE DATABASE"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_is_told_which() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let user = format!("duly_weak_{}", std::process::id());
    order(&url, &format!("CREATE ROLE {user} LOGIN")).await?;
    let weak = with_user(&url, &user);
    let told = async {
        fails(&weak, 1, &["may not use the tables", "migrate up", "GRANT duly_engine"]).await?;
        order(&url, "DROP SCHEMA duly CASCADE").await?;
        fails(&weak, 1, &["may not set up", "migrate up", "GRANT CREATE"]).await
    };
    let told = told.await;
    order(&url, &format!("DROP ROLE {user}")).await?;
    told
}

/// Row-level security does not hold an owner or a superuser.
#[tokio::test(flavor = "multi_thread")]
async fn s03_a_node_with_keys_does_not_run_as_an_owner_or_a_superuser() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let keys = Keys::write(Path::new(DULY), folder.path())?;
    let config = keys.config()?;
    let (owner, node) =
        (format!("duly_owner_{}", std::process::id()), format!("duly_node_{}", std::process::id()));
    order(
        &url,
        &format!(
            "CREATE ROLE {owner} LOGIN; ALTER SCHEMA duly OWNER TO {owner};
             CREATE ROLE {node} LOGIN IN ROLE duly_engine"
        ),
    )
    .await?;
    let told = async {
        for (store, words) in
            [(url.clone(), "is a superuser"), (with_user(&url, &owner), "owns the tables")]
        {
            let line = ["serve", "--config", config, "--listen", "127.0.0.1:0", "--store", &store];
            let ended = command::run(Path::new(DULY), &line).await?;
            assert_eq!(ended.code, Some(2), "{ended:?}");
            let told = |word| ended.stderr.contains(word);
            assert!(told(words) && told("duly_engine") && told("--allow-owner"), "{ended:?}");
        }
        let allowed = Node::start_with_keys(Path::new(DULY), "a", &url, config, &["--allow-owner"]);
        allowed.await?.terminate().await?;
        let plain = with_user(&url, &node);
        let node = Node::start_with_keys(Path::new(DULY), "b", &plain, config, &[]).await?;
        node.terminate().await
    };
    let told = told.await;
    order(&url, &format!("ALTER SCHEMA duly OWNER TO CURRENT_USER; DROP ROLE {owner}, {node}"))
        .await?;
    told.map(drop)
}

/// The server of the tests has no certificate.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_encryption_is_not_spoken_to_in_plain_where_others_listen()
-> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let mark = if url.contains('?') { '&' } else { '?' };
    let far = format!("{url}{mark}sslmode=require");
    fails(&far, 1, &["no safe connection", "sslmode=disable"]).await
}

/// A file says what flags and the environment do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reads_its_file() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (whole, broken) = (folder.path().join("duly.yaml"), folder.path().join("broken.yaml"));
    std::fs::write(&broken, "stoer: sqlite:x\n")?;
    let line = ["serve", "--config", broken.to_str().expect("a plain path")];
    let ended = command::run(Path::new(DULY), &line).await?;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("stoer") && ended.stderr.contains("store"), "{ended:?}");
    std::fs::write(&whole, format!("store: {url}\nlisten: localhost:0\nname: filed\n"))?;
    let line = ["serve", "--config", whole.to_str().expect("a plain path")];
    let ended = command::run(Path::new(DULY), &line).await?;
    assert_eq!(ended.code, Some(2), "it may not start without keys unless told so: {ended:?}");
    assert!(ended.stderr.contains("--insecure"), "{ended:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_newer_version_is_left_alone() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    order(&url, "INSERT INTO duly.migration (version) VALUES (9999)").await?;
    fails(&url, 1, &["9999", "newer", "update this one"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_takes_no_writes_is_no_place_for_tasks() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let (_, name) = url.rsplit_once('/').expect("an address names a database");
    let name = name.split_once('?').map_or(name, |(name, _)| name);
    order(&url, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await?;
    fails(&url, 1, &["read-only"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_are_shown_and_applied_before_a_node_starts() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    order(&url, "DROP SCHEMA duly CASCADE").await?;
    let migrate = async |what| {
        let line = ["migrate", what, "--store", &url, "-o", "json"];
        command::run(Path::new(DULY), &line).await
    };
    let before = migrate("status").await?;
    assert_eq!(before.code, Some(1), "{before:?}");
    let known = before.json()?["items"].as_array().map_or(0, Vec::len);
    assert!(known > 0 && before.json()?["items"][0]["appliedAt"].is_null(), "{before:?}");
    let up = migrate("up").await?;
    assert_eq!((up.code, up.json()?["applied"].as_u64()), (Some(0), Some(known as u64)), "{up:?}");
    let after = migrate("status").await?;
    assert_eq!(after.code, Some(0), "{after:?}");
    assert!(after.json()?["items"][0]["appliedAt"].is_string(), "{after:?}");
    assert_eq!(migrate("up").await?.json()?["applied"].as_u64(), Some(0), "nothing is left to do");
    Ok(())
}
