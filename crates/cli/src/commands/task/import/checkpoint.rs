//! The progress of an import, in a small file that is replaced atomically.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::reader::Position;

/// The shortest interval between two writes.
const EVERY: Duration = Duration::from_secs(1);

/// The position up to which all lines were answered, and their counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// The import: the middle part of the idempotency keys.
    pub(super) import: String,
    /// The server.
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) at: Position,
    /// Lines that became tasks.
    pub(super) submitted: u64,
    /// Lines whose tasks existed before.
    #[serde(default)]
    pub(super) existing: u64,
    /// Lines that were rejected.
    pub(super) rejected: u64,
    /// The size of the list of rejected lines.
    pub(super) rejected_bytes: u64,
}

impl Checkpoint {
    /// The checkpoint of a new import.
    pub(super) fn new(import: String, server: String) -> Self {
        let at = Position::default();
        Self { import, server, at, submitted: 0, existing: 0, rejected: 0, rejected_bytes: 0 }
    }

    /// The checkpoint of an earlier process, if any.
    pub(super) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let checkpoint = serde_json::from_slice(&text).with_context(|| {
            let path = path.display();
            format!("{path} is not a checkpoint of an import; move it away or pass --checkpoint")
        })?;
        Ok(Some(checkpoint))
    }
}

/// The file of the checkpoint, and its last write.
#[derive(Debug)]
pub(super) struct CheckpointFile {
    /// None for a stream without `--checkpoint`.
    path: Option<PathBuf>,
    saved: Option<(Instant, Checkpoint)>,
}

impl CheckpointFile {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, saved: None }
    }

    /// Whether another process can continue: there is a file.
    pub(super) fn is_resumable(&self) -> bool {
        self.path.is_some()
    }

    /// Saves the checkpoint at most once per interval.
    pub(super) fn save_throttled(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let is_fresh = self.saved.as_ref().is_some_and(|(at, _)| at.elapsed() < EVERY);
        if is_fresh { Ok(()) } else { self.save(checkpoint) }
    }

    /// Saves the checkpoint if it has changed.
    pub(super) fn save(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if self.saved.as_ref().is_some_and(|(_, saved)| saved == checkpoint) {
            return Ok(());
        }
        replace(path, &serde_json::to_vec(checkpoint)?).with_context(|| {
            let path = path.display();
            format!("cannot write {path}; pass --checkpoint with a writable path")
        })?;
        self.saved = Some((Instant::now(), checkpoint.clone()));
        Ok(())
    }
}

/// Replaces the file atomically: a reader sees the old or the new one, even after a power failure.
fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.import");
        assert_eq!(Checkpoint::load(&path).unwrap(), None);
        let mut checkpoint = Checkpoint::new("x".to_owned(), "http://a/".to_owned());
        let mut checkpoint_file = CheckpointFile::new(Some(path.clone()));
        checkpoint_file.save(&checkpoint).unwrap();
        checkpoint.at = Position { offset: 7, line: 2 };
        checkpoint_file.save_throttled(&checkpoint).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap().unwrap().at, Position::default(), "too soon");
        checkpoint_file.save(&checkpoint).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap(), Some(checkpoint));
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn another_file_is_not_taken_for_a_checkpoint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"type\":\"echo\"}").unwrap();
        assert!(Checkpoint::load(file.path()).unwrap_err().to_string().contains("--checkpoint"));
    }
}
