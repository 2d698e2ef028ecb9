//! What is imported: a file that can be read again from the middle, or a stream. And what makes
//! it the same import when it is started again.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use duly_core::ports::random::Random as _;
use duly_engine::random::OsRandom;
use sha2::{Digest as _, Sha256};

use super::checkpoint::Checkpoint;
use super::reader::Position;
use crate::args::ImportArgs;

/// How much of a file's beginning tells it from others.
const HEAD_BYTES: u64 = 64 * 1024;
/// Bytes of the hash that go into the keys.
const HASH_BYTES: usize = 8;

/// The opened input.
pub(super) struct Source {
    input: Input,
    /// Names the import in the keys of its lines.
    import: String,
    /// Where its checkpoint is kept.
    pub(super) checkpoint: Option<PathBuf>,
    /// Where its rejected lines are listed.
    pub(super) rejected: Option<PathBuf>,
}

enum Input {
    File(File, u64),
    Stream(Box<dyn Read + Send>),
}

impl Source {
    pub(super) fn open(args: &ImportArgs) -> anyhow::Result<Self> {
        let input = open(&args.file)?;
        let beside = |ending: &str| match &input {
            Input::File(..) => {
                let mut path = args.file.as_os_str().to_owned();
                path.push(ending);
                Some(PathBuf::from(path))
            }
            Input::Stream(_) => None,
        };
        let checkpoint = args.checkpoint.clone().or_else(|| beside(".import"));
        let rejected = args.rejected.clone().or_else(|| beside(".rejected"));
        let import = match (&args.name, &input) {
            (Some(name), _) => hash(&[b"name", name.as_bytes()]),
            (None, Input::File(file, size)) => identity(&args.file, file, *size)?,
            (None, Input::Stream(_)) if args.checkpoint.is_some() => {
                bail!("a stream has no name of its own; pass --name to go on with it later")
            }
            // Each time another one: the same text may well be meant twice.
            (None, Input::Stream(_)) => hash(&[b"stream", &OsRandom::new().next().to_be_bytes()]),
        };
        Ok(Self { input, import, checkpoint, rejected })
    }

    /// Where to go on: at the beginning, or where an earlier process of the same import ended.
    pub(super) fn resume(&self, args: &ImportArgs, server: &str) -> anyhow::Result<Checkpoint> {
        let fresh = Checkpoint::new(self.import.clone(), server.to_owned());
        let Some(path) = &self.checkpoint else { return Ok(fresh) };
        let Some(found) = Checkpoint::load(path)? else { return Ok(fresh) };
        let path = path.display();
        let Checkpoint { import, server: other, at, .. } = &found;
        // The identity itself also names the import: for a file that was mended.
        if *import != self.import && args.name.as_ref() != Some(import) {
            bail!(
                "{path} belongs to another import, or {} has changed since; pass --name {import} \
                 to go on with that import after line {}, or remove {path} to start a new one",
                args.file.display(),
                at.line
            );
        }
        // Nothing of it is there: perhaps the address was wrong.
        if at.line == 0 {
            return Ok(Checkpoint { server: server.to_owned(), ..found });
        }
        if other != server {
            bail!(
                "{path} belongs to an import into {other}, not {server}; pass another --checkpoint, \
                 or remove {path} to start at line 1: what a server took within the last 24 hours \
                 it does not take twice"
            );
        }
        Ok(found)
    }

    /// How long the input is, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        match self.input {
            Input::File(_, size) => Some(size),
            Input::Stream(_) => None,
        }
    }

    /// The input from this place on.
    pub(super) fn read_from(self, at: Position) -> anyhow::Result<Box<dyn Read + Send>> {
        match self.input {
            Input::File(_, size) if size < at.offset => {
                bail!("the file is shorter than the {} bytes that were imported", at.offset)
            }
            Input::File(mut file, _) => {
                file.seek(SeekFrom::Start(at.offset)).context("cannot seek in the file")?;
                Ok(Box::new(file))
            }
            Input::Stream(mut stream) => {
                let skipped = io::copy(&mut stream.by_ref().take(at.offset), &mut io::sink());
                if skipped.context("cannot read the stream")? < at.offset {
                    bail!("the stream is shorter than the {} bytes that were imported", at.offset);
                }
                Ok(stream)
            }
        }
    }
}

fn open(path: &Path) -> anyhow::Result<Input> {
    if path.as_os_str() == "-" {
        return Ok(Input::Stream(Box::new(io::stdin())));
    }
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let metadata = file.metadata().with_context(cannot)?;
    if metadata.is_dir() {
        bail!("{} is a directory; pass a file with one task per line", path.display());
    }
    // A pipe has a path too.
    let is_file = metadata.is_file();
    Ok(if is_file { Input::File(file, metadata.len()) } else { Input::Stream(Box::new(file)) })
}

/// What tells a file from others. The whole path, since files in many directories may have the
/// same name and beginning.
fn identity(path: &Path, file: &File, size: u64) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let whole = path.canonicalize().with_context(cannot)?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).with_context(cannot)?;
    let name = whole.as_os_str().as_encoded_bytes();
    Ok(hash(&[b"file", name, &size.to_be_bytes(), &head]))
}

fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // Length first, so that no two rows of parts hash alike.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
