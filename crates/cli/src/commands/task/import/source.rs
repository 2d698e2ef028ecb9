//! The input: a file that can be read from the middle, or a stream. And the identity of the import,
//! by which a restart continues it.

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

/// How much of a file's beginning is part of its identity.
const HEAD_BYTES: u64 = 64 * 1024;
/// Bytes of the hash in the keys.
const HASH_BYTES: usize = 8;

/// The opened input.
pub(super) struct Source {
    input: Input,
    /// Identifies the import in the keys of its lines.
    import: String,
    /// The path of its checkpoint.
    pub(super) checkpoint: Option<PathBuf>,
    /// The path of the list of rejected lines.
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
                bail!("a checkpoint of a stream needs a name; pass --name to continue it later")
            }
            // A new import each time: the same text may be intended twice.
            (None, Input::Stream(_)) => hash(&[b"stream", &OsRandom::new().next().to_be_bytes()]),
        };
        Ok(Self { input, import, checkpoint, rejected })
    }

    /// Where to start: at the beginning, or where an earlier process of the same import stopped.
    pub(super) fn resume(&self, args: &ImportArgs, server: &str) -> anyhow::Result<Checkpoint> {
        let fresh = Checkpoint::new(self.import.clone(), server.to_owned());
        let Some(path) = &self.checkpoint else { return Ok(fresh) };
        let Some(found) = Checkpoint::load(path)? else { return Ok(fresh) };
        let path = path.display();
        let Checkpoint { import, server: other, at, .. } = &found;
        // `--name` may also be the identity itself: for a file that was fixed.
        if *import != self.import && args.name.as_ref() != Some(import) {
            bail!(
                "{path} belongs to another import, or {} has changed since; pass --name {import} \
                 to continue that import after line {}, or remove {path} to start a new one",
                args.file.display(),
                at.line
            );
        }
        // Nothing was imported: perhaps the address was wrong.
        if at.line == 0 {
            return Ok(Checkpoint { server: server.to_owned(), ..found });
        }
        if other != server {
            bail!(
                "{path} belongs to an import into {other}, not {server}; pass another --checkpoint, \
                 or remove {path} to start at line 1; a server recognises lines that it accepted \
                 within the last 24 hours"
            );
        }
        Ok(found)
    }

    /// The size of the input, if known.
    pub(super) fn size(&self) -> Option<u64> {
        match self.input {
            Input::File(_, size) => Some(size),
            Input::Stream(_) => None,
        }
    }

    /// The input from this position on.
    pub(super) fn read_from(self, at: Position) -> anyhow::Result<Box<dyn Read + Send>> {
        match self.input {
            Input::File(_, size) if size < at.offset => {
                bail!(
                    "the file is shorter than the {} bytes that were imported; restore the file, or remove \
                     the checkpoint to start again",
                    at.offset
                )
            }
            Input::File(mut file, _) => {
                file.seek(SeekFrom::Start(at.offset)).context("cannot seek in the file")?;
                Ok(Box::new(file))
            }
            Input::Stream(mut stream) => {
                let skipped = io::copy(&mut stream.by_ref().take(at.offset), &mut io::sink());
                if skipped.context("cannot read the stream")? < at.offset {
                    bail!(
                        "the stream is shorter than the {} bytes that were imported; send the whole stream again",
                        at.offset
                    );
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
    // A path may also name a pipe.
    let is_file = metadata.is_file();
    Ok(if is_file { Input::File(file, metadata.len()) } else { Input::Stream(Box::new(file)) })
}

/// The identity of a file. It contains the whole path, since files in different directories may have
/// the same name and beginning.
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
        // Length first, so that no two lists of parts have the same hash.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
