//! A large import: memory that does not grow with the file, and one task per line whatever is
//! killed on the way.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use duly_testkit::wait::{PATIENCE, eventually};
use tokio::process::Child;

use super::{World, ended, imported, lines, numbers, plain};

const SMALL: usize = 20_000;
const LARGE: usize = 100_000;
/// What the allocator may keep more or less of from run to run.
const SLACK_KIB: u64 = 8 * 1024;

/// What passes the wire to an importer that is to be killed in the middle takes so much longer.
const SLOW: Duration = Duration::from_millis(50);

/// How far the checkpoint of a file is.
fn line(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(format!("{}.import", plain(file))).ok()?;
    serde_json::from_str::<serde_json::Value>(&text).ok()?["line"].as_u64()
}

/// Waits until so many lines are noted as answered.
async fn reaches(file: &Path, wanted: usize) -> anyhow::Result<()> {
    let what = format!("line {wanted} is noted");
    let look = || async { line(file).filter(|line| *line >= wanted as u64).map(drop) };
    eventually(&what, PATIENCE, look).await
}

async fn kill(mut importer: Child) -> anyhow::Result<()> {
    importer.start_kill()?;
    importer.wait().await?;
    Ok(())
}

/// The most memory that a process has had so far, in KiB.
fn peak_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Imports a file in one go; returns the ids of its tasks and the importer's peak memory.
async fn import_all(world: &World, file: &Path) -> anyhow::Result<(Vec<String>, u64)> {
    let importer = world.spawn(&[plain(file), "-o", "id"])?;
    let id = importer.id().context("it has ended")?;
    let mut peak = 0;
    let watch = async {
        // It never says that it is about to end, so it is asked as long as it lives.
        eventually("the importer ends", PATIENCE, || {
            let found = peak_kib(id);
            peak = found.unwrap_or(peak);
            async move { found.is_none().then_some(()) }
        })
        .await
    };
    let (watched, ended) = tokio::join!(watch, ended(importer));
    watched?;
    let ended = ended?;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    Ok((ended.stdout.lines().map(str::to_owned).collect(), peak))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_import_is_killed_again_and_again_and_still_exact() -> anyhow::Result<()> {
    let world = World::start().await?;
    let file = world.file("large.ndjson", &lines(0..LARGE))?;
    for share in [10, 35] {
        let importer = world.spawn(&[plain(&file)])?;
        reaches(&file, LARGE * share / 100).await?;
        kill(importer).await?;
    }
    // This one outlives the server and is killed itself later. A busy machine may notice late how far
    // it is: the rest takes longer than that.
    world.proxy.delay(SLOW);
    let importer = world.spawn(&[plain(&file)])?;
    reaches(&file, LARGE * 55 / 100).await?;
    let world = world.with_server_killed().await?;
    reaches(&file, LARGE * 75 / 100).await?;
    kill(importer).await?;
    world.proxy.pass();
    assert!(line(&file) < Some(LARGE as u64), "it was killed in the middle");
    let last = world.import(&file, &["-o", "json"]).await?;
    assert_eq!((last.code, imported(&last)?), (Some(0), LARGE as u64), "{last:?}");

    // All of it once more without a checkpoint: every line is known by its key.
    std::fs::remove_file(format!("{}.import", plain(&file)))?;
    let (ids, large) = import_all(&world, &file).await?;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), LARGE, "one task for each line");
    let numbers = numbers(world.server.client()).await?;
    assert!(numbers.into_iter().eq(0..LARGE), "and none besides");

    let file = world.file("small.ndjson", &lines(LARGE..LARGE + SMALL))?;
    let (ids, small) = import_all(&world, &file).await?;
    assert_eq!(ids.len(), SMALL);
    assert!(small > 0 && large > 0, "the peaks are known");
    assert!(large < small + SLACK_KIB, "{SMALL} lines took {small} KiB, {LARGE} took {large} KiB");
    Ok(())
}
