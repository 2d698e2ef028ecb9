//! How far an import came, in a small file that is replaced as a whole.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::reader::Position;

/// How often the file is written, at the most.
const EVERY: Duration = Duration::from_secs(1);

/// Everything before a line was answered, and so was the rest of what is counted here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// Which import: the middle part of the idempotency keys.
    pub(super) import: String,
    /// Into which server.
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) at: Position,
    /// Lines that became tasks.
    pub(super) submitted: u64,
    /// Lines whose tasks were there already.
    #[serde(default)]
    pub(super) existing: u64,
    /// Lines that did not.
    pub(super) rejected: u64,
    /// How long the list of the latter is.
    pub(super) rejected_bytes: u64,
}

impl Checkpoint {
    /// The beginning of an import.
    pub(super) fn new(import: String, server: String) -> Self {
        let at = Position::default();
        Self { import, server, at, submitted: 0, existing: 0, rejected: 0, rejected_bytes: 0 }
    }

    /// What an earlier process left, if there was one.
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
            format!("{path} is not the checkpoint of an import; move it away or pass --checkpoint")
        })?;
        Ok(Some(checkpoint))
    }
}

/// Where the checkpoint is kept, and when it was written last.
#[derive(Debug)]
pub(super) struct Keeper {
    /// A stream has none unless asked for.
    path: Option<PathBuf>,
    saved: Option<(Instant, Checkpoint)>,
}

impl Keeper {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, saved: None }
    }

    /// Whether there is a file.
    pub(super) fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Writes it unless that was done a moment ago.
    pub(super) fn save_now_and_then(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let is_fresh = self.saved.as_ref().is_some_and(|(at, _)| at.elapsed() < EVERY);
        if is_fresh { Ok(()) } else { self.save(checkpoint) }
    }

    /// Writes it, unless the file says the same already.
    pub(super) fn save(&mut self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if self.saved.as_ref().is_some_and(|(_, saved)| saved == checkpoint) {
            return Ok(());
        }
        replace(path, &serde_json::to_vec(checkpoint)?).with_context(|| {
            let path = path.display();
            format!("cannot write {path}; pass --checkpoint with a path that can be written")
        })?;
        self.saved = Some((Instant::now(), checkpoint.clone()));
        Ok(())
    }
}

/// Puts another file in the place of this one: whoever reads it sees the old or the new one, even
/// after the power failed.
fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".tmp");
    let mut file = File::create(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
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
        let mut keeper = Keeper::new(Some(path.clone()));
        keeper.save(&checkpoint).unwrap();
        checkpoint.at = Position { offset: 7, line: 2 };
        keeper.save_now_and_then(&checkpoint).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap().unwrap().at, Position::default(), "too soon");
        keeper.save(&checkpoint).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap(), Some(checkpoint));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn another_file_is_not_taken_for_a_checkpoint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"type\":\"echo\"}").unwrap();
        assert!(Checkpoint::load(file.path()).unwrap_err().to_string().contains("--checkpoint"));
    }
}
