//! Starts that cannot succeed: one clear message, exit code 1, no panic.

use duly_testkit::command::{self, Ended};
use duly_testkit::disk::Disk;

use crate::{duly, path, start};

async fn refused(arguments: &[&str]) -> anyhow::Result<Ended> {
    let ended = command::run(duly(), arguments).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    Ok(ended)
}

#[tokio::test]
async fn a_read_only_directory_is_refused_with_a_clear_message() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let Some(_disk) = Disk::mount(directory.path(), "ro")? else { return Ok(()) };
    let data = path(directory.path());
    let deeper = directory.path().join("deeper");
    for data in [data, path(&deeper)] {
        let ended = refused(&["dev", "--listen", "127.0.0.1:0", "--data", data]).await?;
        assert!(ended.stderr.contains(data), "{ended:?}");
        assert!(ended.stderr.contains("ead-only"), "{ended:?}");
        assert!(ended.stderr.contains("--data"), "it says what to do: {ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_second_process_on_the_file_is_refused() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let first = start(data.path()).await?;
    let arguments = ["dev", "--listen", "127.0.0.1:0", "--data", path(data.path())];
    let ended = refused(&arguments).await?;
    assert!(ended.stderr.contains(&format!("pid {}", first.pid())), "{ended:?}");
    assert!(ended.stderr.contains("stop it"), "{ended:?}");
    let task = first.client().submit(&crate::task("echo", 7.into())).await?;
    assert_eq!(crate::outcome(&first, task.task_id).await?.status.as_str(), "SUCCESS");
    Ok(())
}

#[tokio::test]
async fn a_taken_port_is_refused_with_advice() -> anyhow::Result<()> {
    let (data, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let first = start(data.path()).await?;
    let address = first.url().trim_start_matches("http://");
    let ended = refused(&["dev", "--listen", address, "--data", path(other.path())]).await?;
    assert!(ended.stderr.contains(address), "{ended:?}");
    assert!(ended.stderr.contains("--listen 127.0.0.1:0"), "{ended:?}");
    assert!(first.client().ready().await?.is_ready());
    Ok(())
}
