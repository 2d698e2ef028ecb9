//! Who may do what on a server with a file.

use std::path::Path;

use duly_testkit::keys::Keys;
use duly_testkit::{Node, matrix, report};

use super::DULY;

#[tokio::test(flavor = "multi_thread")]
async fn s01_s04_each_role_may_do_on_sqlite_what_the_document_says() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let keys = Keys::write(Path::new(DULY), folder.path())?;
    let store = format!("sqlite:{}", folder.path().join("duly.db").display());
    // Nobody beats for the session that is asked for.
    let flags = ["--session-ttl", "60s"];
    let node = Node::start_with_keys(Path::new(DULY), "one", &store, keys.config()?, &flags);
    let node = node.await?;
    let tried = matrix::check(node.url(), &keys).await?;
    report::say(&format!("{tried:?}"));
    assert!(tried.cells > 500 && tried.foreign > 80, "{tried:?}");
    Ok(())
}
