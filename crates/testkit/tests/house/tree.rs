//! The files of the project, read once per test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file and its path from the root, with forward slashes.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What holds no source: directories, and the file `.git` of a worktree.
const SKIPPED: [&str; 3] = ["target", ".git", ".duly"];

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Every text file of the project.
pub(crate) fn files() -> Vec<TextFile> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 50, "only {} files found", found.len());
    found
}

/// Every file whose name ends like this.
pub(crate) fn files_ending(end: &str) -> Vec<TextFile> {
    files().into_iter().filter(|file| file.path.ends_with(end)).collect()
}

/// The text of one file.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What `cargo metadata` says of the workspace.
pub(crate) fn metadata(more: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(more)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn walk(root: &Path, directory: &Path, found: &mut Vec<TextFile>) {
    for entry in std::fs::read_dir(directory).expect("a directory that can be read") {
        let path = entry.expect("an entry that can be read").path();
        let name = path.file_name().unwrap_or_default();
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let path = path.strip_prefix(root).expect("below the root");
            found.push(TextFile { path: path.to_string_lossy().replace('\\', "/"), text });
        }
    }
}
