//! Small disks to fill, and disks that cannot be written.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::report;

/// A file system of its own, in memory; dropping it unmounts it.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts one on a directory with options such as `size=8m` or `ro`. Nothing, if this
    /// machine does not let the test mount and not everything must run.
    pub fn mount(path: &Path, options: &str) -> anyhow::Result<Option<Self>> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "duly-test"])
            .arg(path)
            .output();
        let why = match output {
            Ok(output) if output.status.success() => {
                return Ok(Some(Self { path: path.to_owned() }));
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        let missing = format!("a tmpfs cannot be mounted: {why}");
        report::skip(&missing, "run the tests as root, with the right to mount")?;
        Ok(None)
    }

    /// Takes some of the space, in a file beside the others.
    pub fn take(&self, bytes: usize) -> anyhow::Result<Filler> {
        let path = self.path.join("filler");
        std::fs::write(&path, vec![0; bytes]).context("cannot write the filler")?;
        Ok(Filler { path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that is being killed may still have files open.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.path).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            report::say(&format!("{} could not be unmounted", self.path.display()));
        }
    }
}

/// The file that keeps a disk full.
#[derive(Debug)]
pub struct Filler {
    path: PathBuf,
}

impl Filler {
    /// Takes all that is left too, to the last byte.
    pub fn take_the_rest(&mut self) -> anyhow::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        for chunk in [64 * 1024, 4096, 1] {
            write_until_full(&mut file, chunk)?;
        }
        Ok(())
    }

    /// Gives the space back.
    pub fn remove(self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.path).context("cannot remove the filler")
    }
}

fn write_until_full(file: &mut File, chunk: usize) -> anyhow::Result<()> {
    let chunk = vec![0; chunk];
    loop {
        match file.write_all(&chunk) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => bail!("cannot fill the disk: {error}"),
        }
    }
}
