//! Flags of `duly task import`.

use std::path::{Path, PathBuf};

use super::ClientArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// One task per line, with the fields of POST /tasks; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What makes it the same import when it is started again; the path, size and beginning of
    /// FILE if absent
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Where to note how far the import came; FILE.import if absent
    #[arg(long, value_name = "PATH")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Where to list the lines that were rejected; FILE.rejected if absent
    #[arg(long, value_name = "PATH")]
    pub(crate) rejected: Option<PathBuf>,
    /// Stop at the first line that is rejected
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl ImportArgs {
    /// The command that goes on with this import, for a shell.
    pub(crate) fn again(&self) -> String {
        let mut command = format!("duly task import {}", word(&self.file.to_string_lossy()));
        for (flag, value) in [
            ("name", self.name.as_deref().map(Into::into)),
            ("checkpoint", self.checkpoint.as_deref().map(Path::to_string_lossy)),
            ("rejected", self.rejected.as_deref().map(Path::to_string_lossy)),
            ("server", Some(self.client.server.as_str().into())),
        ] {
            if let Some(value) = value {
                command += &format!(" --{flag} {}", word(&value));
            }
        }
        if self.strict { command + " --strict" } else { command }
    }
}

/// One word of a command, in quotes where a shell would read more into it.
fn word(text: &str) -> String {
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
            assert_eq!(word(text), quoted);
        }
    }
}
