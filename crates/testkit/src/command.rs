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

/// What the surroundings of a test may have set, and what would change what a command does.
const VARIABLES: [&str; 12] = [
    "RUST_LOG",
    "DULY_SERVER",
    "DULY_DATA",
    "DULY_STORE",
    "DULY_BENCH_STORE",
    "DULY_TOKEN",
    "DULY_TOKEN_FILE",
    "DULY_TENANT",
    "DULY_CA_FILE",
    "COLUMNS",
    "NO_COLOR",
    "CLICOLOR_FORCE",
];

/// Runs a command and waits for its end.
pub async fn run(binary: &Path, arguments: &[&str]) -> anyhow::Result<Ended> {
    run_with(binary, arguments, &[]).await
}

/// The same with these variables in its environment.
pub async fn run_with(
    binary: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> anyhow::Result<Ended> {
    within("the command ends", end_of(prepare(binary, arguments, variables))).await?
}

/// The same for one that has a lot to do: it takes what it takes.
pub async fn run_long(binary: &Path, arguments: &[&str]) -> anyhow::Result<Ended> {
    end_of(prepare(binary, arguments, &[])).await
}

/// A command that depends on nothing but what it is given.
pub(crate) fn prepare(binary: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied());
    command
}

async fn end_of(mut command: Command) -> anyhow::Result<Ended> {
    let output = command.output().await?;
    Ok(Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}
