//! The list of rejected lines: one JSON object per line, in order.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use duly_client::wire::Problem;
use serde::Serialize;

use super::reader::Rejection;

#[derive(Serialize)]
struct Entry<'a> {
    line: u64,
    problem: &'a Problem,
}

/// The file, created with the first rejected line.
#[derive(Debug)]
pub(super) struct RejectedFile {
    path: Option<PathBuf>,
    file: Option<File>,
    bytes: u64,
}

impl RejectedFile {
    /// Continues a list of this size. Drops the rest: lines that an earlier process added after its
    /// last checkpoint come again, and those of another import are obsolete.
    pub(super) fn open(path: Option<PathBuf>, bytes: u64) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self { path, file: None, bytes: 0 }) };
        let file = if path.exists() { Some(open(&path)?) } else { None };
        let mut rejected = Self { path: Some(path), file, bytes: 0 };
        if let Some(file) = &mut rejected.file {
            let kept = bytes.min(file.metadata()?.len());
            file.set_len(kept)?;
            file.seek(SeekFrom::End(0))?;
            rejected.bytes = kept;
        }
        Ok(rejected)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The size of the list.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds lines to the list.
    pub(super) fn add(&mut self, rejections: &[Rejection]) -> anyhow::Result<()> {
        let Some(path) = self.path.as_deref().filter(|_| !rejections.is_empty()) else {
            return Ok(());
        };
        let mut text = Vec::new();
        for Rejection { before, problem } in rejections {
            serde_json::to_writer(&mut text, &Entry { line: before.line + 1, problem })?;
            text.push(b'\n');
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(path)?),
        };
        file.write_all(&text).with_context(|| format!("cannot write {}", path.display()))?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    file.with_context(|| {
        format!("cannot write {}; pass --rejected with a writable path", path.display())
    })
}
