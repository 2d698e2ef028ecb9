//! Running the binary to its end, as a person at a terminal does.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::Command;

use crate::wait::within;

/// How a command ended and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; nothing if a signal ended it.
    pub code: Option<i32>,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl Ended {
    /// Standard output as JSON.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("not JSON: {self:?}"))
    }

    /// The only line of standard output.
    pub fn line(&self) -> anyhow::Result<&str> {
        let line = self.stdout.strip_suffix('\n').filter(|line| !line.contains('\n'));
        line.with_context(|| format!("not one line: {self:?}"))
    }
}

/// Runs a command and waits for its end.
pub async fn run(binary: &Path, arguments: &[&str]) -> anyhow::Result<Ended> {
    within("the command ends", run_long(binary, arguments)).await?
}

/// The same for one that has a lot to do: it takes what it takes.
pub async fn run_long(binary: &Path, arguments: &[&str]) -> anyhow::Result<Ended> {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    for variable in
        ["RUST_LOG", "DULY_SERVER", "DULY_DATA", "DULY_STORE", "DULY_BENCH_STORE", "DULY_TOKEN"]
    {
        command.env_remove(variable);
    }
    let output = command.output().await?;
    Ok(Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}
