//! Starts that cannot succeed: one clear message, exit code 1, no panic.

use std::io::ErrorKind;
use std::path::Path;

use duly_testkit::command::{self, Ended};
use duly_testkit::disk::Disk;

use super::{duly, path, start};

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
    let task = first.client().submit(&super::task("echo", 7.into())).await?;
    assert_eq!(super::outcome(&first, task.task_id).await?.status.as_str(), "SUCCESS");
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

/// What is said about a file that is not whole.
fn assert_says_what_to_do(text: &str) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["incomplete or damaged", "duly.db-wal", "`duly backup`", "`duly restore`"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(text.matches("incomplete or damaged").count(), 1, "once: {text}");
}

/// A start on a copy is refused, and so is a look at it.
async fn assert_is_incomplete(data: &Path) -> anyhow::Result<()> {
    let doctor = ["doctor", "--data", path(data), "--server", "http://127.0.0.1:9", "-o", "json"];
    for _ in 0..2 {
        let found = command::run(duly(), &doctor).await?;
        assert_eq!(found.code, Some(1), "{found:?}");
        let findings = found.json()?;
        let mut file = findings.as_array().into_iter().flatten();
        let file = file.find(|finding| finding["check"] == "database file");
        let file = file.expect("there is a file to look at");
        assert_eq!(file["state"], "fail", "{file}");
        assert_says_what_to_do(&format!("{} {}", file["detail"], file["remedy"]));
        let ended = refused(&["dev", "--listen", "127.0.0.1:0", "--data", path(data)]).await?;
        assert!(ended.stderr.contains(path(data)), "{ended:?}");
        assert_says_what_to_do(&ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_new_database_copied_without_its_log_is_refused() -> anyhow::Result<()> {
    let (data, copy) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let server = start(data.path()).await?;
    server.client().submit(&super::task("echo", 7.into())).await?;
    // Everything still stands in the log: an idle server moves it after two seconds.
    std::fs::copy(data.path().join("duly.db"), copy.path().join("duly.db"))?;
    assert_is_incomplete(copy.path()).await
}

#[tokio::test]
async fn a_database_of_which_pages_are_missing_is_refused() -> anyhow::Result<()> {
    let (data, copy) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let server = start(data.path()).await?;
    for number in 0..200 {
        server.client().submit(&super::task("echo", number.into())).await?;
    }
    let (status, talk) = server.terminate().await?;
    assert!(status.success(), "{talk}");
    let bytes = std::fs::read(data.path().join("duly.db"))?;
    // As a copy that was made while pages were being moved: its end is not there yet.
    std::fs::write(copy.path().join("duly.db"), &bytes[..bytes.len() / 2 / 4096 * 4096])?;
    assert_is_incomplete(copy.path()).await
}

#[tokio::test]
async fn a_start_on_a_full_disk_says_that_it_is_full() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let Some(disk) = Disk::mount(directory.path(), "size=32m")? else { return Ok(()) };
    let server = start(directory.path()).await?;
    let kept = server.client().submit(&super::task("echo", 7.into())).await?;
    let (status, talk) = server.terminate().await?;
    assert!(status.success(), "{talk}");
    // SQLite makes the index of the log anew, which fails with a code of its own.
    std::fs::remove_file(directory.path().join("duly.db-shm")).or_else(|error| {
        match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }
    })?;
    let mut filler = disk.take(0)?;
    filler.take_the_rest()?;
    let arguments = ["dev", "--listen", "127.0.0.1:0", "--data", path(directory.path())];
    let ended = refused(&arguments).await?;
    assert!(ended.stderr.contains("the disk is full; free some space"), "{ended:?}");
    filler.remove()?;
    let server = start(directory.path()).await?;
    assert_eq!(super::outcome(&server, kept.task_id).await?.status.as_str(), "SUCCESS");
    Ok(())
}
