//! Who may do what on a node that shares PostgreSQL, as a user who owns no table.

use std::path::Path;

use duly_testkit::keys::Keys;
use duly_testkit::{Node, matrix, report};

use super::DULY;
use super::start::{database, order, with_user};

#[tokio::test(flavor = "multi_thread")]
async fn s01_s04_each_role_may_do_on_postgresql_what_the_document_says() -> anyhow::Result<()> {
    let Some((_scratch, url)) = database().await else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let keys = Keys::write(Path::new(DULY), folder.path())?;
    let user = format!("duly_matrix_{}", std::process::id());
    order(&url, &format!("CREATE ROLE {user} LOGIN IN ROLE duly_engine")).await?;
    let store = with_user(&url, &user);
    let tried = async {
        // Nobody beats for the session that is asked for.
        let flags = ["--session-ttl", "60s"];
        let node = Node::start_with_keys(Path::new(DULY), "one", &store, keys.config()?, &flags);
        let node = node.await?;
        matrix::check(node.url(), &keys).await
    };
    let tried = tried.await;
    order(&url, &format!("DROP ROLE {user}")).await?;
    let tried = tried?;
    report::say(&format!("{tried:?}"));
    assert!(tried.cells > 500 && tried.foreign > 80, "{tried:?}");
    Ok(())
}
