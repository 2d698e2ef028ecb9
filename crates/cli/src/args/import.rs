//! Flags of `duly task import`.

use std::path::{Path, PathBuf};

use super::ClientArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// One task per line, with the fields of POST /tasks; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Identify the import when it is restarted [default: the path, size and beginning of FILE]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Save the progress to this file [default: FILE.import]
    #[arg(long, value_name = "PATH")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// List rejected lines in this file [default: FILE.rejected]
    #[arg(long, value_name = "PATH")]
    pub(crate) rejected: Option<PathBuf>,
    /// Stop at the first rejected line
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl ImportArgs {
    /// The shell command that continues this import.
    pub(crate) fn resume_command(&self) -> String {
        let mut command = format!("duly task import {}", quote(&self.file.to_string_lossy()));
        for (flag, value) in [
            ("name", self.name.as_deref().map(Into::into)),
            ("checkpoint", self.checkpoint.as_deref().map(Path::to_string_lossy)),
            ("rejected", self.rejected.as_deref().map(Path::to_string_lossy)),
            ("server", Some(self.client.server.server.as_str().into())),
        ] {
            if let Some(value) = value {
                command += &format!(" --{flag} {}", quote(&value));
            }
        }
        if self.strict { command + " --strict" } else { command }
    }
}

/// One word of a shell command, quoted if needed.
fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/.:_-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_the_same_to_a_shell() {
        for (text, quoted) in
            [("a/b.ndjson", "a/b.ndjson"), ("my file", "'my file'"), ("it's", r"'it'\''s'")]
        {
            assert_eq!(quote(text), quoted);
        }
    }
}
