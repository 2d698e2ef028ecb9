//! `duly backup`: a copy of the store, from a running server or from a directory.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use duly_client::{Backup, Client};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::CopyProgress;
use duly_store::clock::SystemClock;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::BackupArgs;
use crate::exit::{Ending, Usage};
use crate::{output, wiring};

/// Bytes after which the file is synced. A server on the same disk waits while a sync of ours runs, so
/// each sync is short, and the disk rests afterwards for as long as the sync took.
const SYNC_BYTES: u64 = 1 << 20;
/// How often to ask the server for its progress.
const POLL: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<Ending> {
    let target = args.file.clone().unwrap_or_else(default_name);
    if target.exists() {
        let name = target.display();
        return Err(Usage::new(format!("{name} exists; pass another file")).into());
    }
    let part = PartialFile::beside(&target);
    let bytes = match &args.data {
        Some(data) => copy_directory(data, &part.0)?,
        None => super::block_on(download(args, &part.0))?,
    };
    fs::rename(&part.0, &target).with_context(|| format!("cannot create {}", target.display()))?;
    output::data(&target.display().to_string())?;
    output::say(&format!("{bytes} bytes; next: duly restore {} --data DIR", target.display()));
    Ok(Ending::Ok)
}

fn default_name() -> PathBuf {
    let now = SystemClock::default().now().to_string();
    let plain: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("duly-{plain}.db").into()
}

/// An incomplete file; removed unless it is renamed.
struct PartialFile(PathBuf);

impl PartialFile {
    fn beside(target: &Path) -> Self {
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        Self(name.into())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // It was renamed if all went well.
        drop(fs::remove_file(&self.0));
    }
}

/// Copies a database that no server has open; returns its size.
fn copy_directory(data: &Path, part: &Path) -> anyhow::Result<u64> {
    let bar = Bar::new("copying");
    wiring::back_up_directory(data, part, |progress| bar.show(progress))?;
    bar.clear();
    Ok(fs::metadata(part)?.len())
}

/// Requests a copy from the server and reads it; returns its size.
async fn download(args: &BackupArgs, part: &Path) -> anyhow::Result<u64> {
    let client = args.server.connect()?;
    let bar = Bar::new("copying on the server");
    let backup = tokio::select! {
        backup = client.back_up() => backup?,
        () = follow_progress(&client, &bar) => bail!("the progress of a backup ended unexpectedly; run this again"),
    };
    bar.clear();
    let bar = Bar::new("reading the copy");
    let written = receive(backup, part, &bar).await?;
    bar.clear();
    Ok(written)
}

/// Shows the server's progress. Never returns.
async fn follow_progress(client: &Client, bar: &Bar) {
    loop {
        tokio::time::sleep(POLL).await;
        // An error here does not end the backup.
        let Ok(state) = client.backup_state().await else { continue };
        if let (Some(copied_bytes), Some(total_bytes)) = (state.copied_bytes, state.total_bytes) {
            bar.show(CopyProgress { copied_bytes, total_bytes });
        }
    }
}

async fn receive(mut backup: Backup, part: &Path, bar: &Bar) -> anyhow::Result<u64> {
    let cannot = || format!("cannot write {}", part.display());
    let mut file = File::create(part).with_context(cannot)?;
    let expected = backup.bytes();
    let total_bytes = expected.unwrap_or(0);
    let (mut copied_bytes, mut synced) = (0, 0);
    while let Some(chunk) = backup.next().await? {
        file.write_all(chunk.as_ref()).with_context(cannot)?;
        copied_bytes += chunk.as_ref().len() as u64;
        if copied_bytes / SYNC_BYTES > synced {
            synced = copied_bytes / SYNC_BYTES;
            let begun = Instant::now();
            file.sync_data().with_context(cannot)?;
            tokio::time::sleep(begun.elapsed()).await;
        }
        bar.show(CopyProgress { copied_bytes, total_bytes });
    }
    if expected.is_some_and(|bytes| bytes != copied_bytes) {
        bail!("the connection ended after {copied_bytes} of {total_bytes} bytes; run this again");
    }
    file.sync_all().with_context(cannot)?;
    Ok(copied_bytes)
}

/// A progress bar on standard error.
struct Bar(ProgressBar);

impl Bar {
    fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new(0).with_message(what);
        let template = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, progress: CopyProgress) {
        self.0.set_length(progress.total_bytes);
        self.0.set_position(progress.copied_bytes);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}
