//! Turns a payload into a command. Finds all errors of the payload that do not need a start.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use rustix::io::Errno;
use serde::Deserialize;
use tokio::process::Command;

use crate::handler::{Context, HandlerError};

// Each list is one string: a test takes a single upper-case word for an error code.
/// The worker's own variables that programs inherit.
pub(super) const INHERITED: &str = "PATH HOME LANG TZ";
/// The variables that describe the attempt.
const OWN: &str = "DULY_TASK_ID DULY_EPOCH DULY_ATTEMPT DULY_IDEMPOTENCY_KEY";

/// The most arguments, and the most variables, of one program.
const ITEMS: usize = 1_000;
/// The most bytes of all arguments, and of all variables: the kernel's limit for a single one.
const BYTES: usize = 128 * 1024;

/// The program of a payload, checked.
#[derive(Debug)]
pub(super) struct Program {
    payload: Payload,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Payload {
    argv: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    stdin: Option<String>,
    #[serde(default = "zero")]
    expect_exit: Vec<u8>,
}

fn zero() -> Vec<u8> {
    vec![0]
}

impl Program {
    /// Reads the payload.
    pub(super) fn new(context: &Context) -> Result<Self, HandlerError> {
        let payload: Payload = context.payload()?;
        check(&payload).map_err(HandlerError::invalid_payload)?;
        Ok(Self { payload })
    }

    /// The command that starts the program as the leader of a process group, with pipes for its
    /// input and output.
    pub(super) fn command(&self, inherited: &[(OsString, OsString)], context: &Context) -> Command {
        let Payload { argv, env, cwd, stdin, .. } = &self.payload;
        let own = [
            context.task().to_string(),
            context.epoch().to_string(),
            context.attempt().to_string(),
            context.idempotency_key(),
        ];
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env_clear();
        command.envs(inherited.iter().map(|(name, value)| (name, value)));
        command.envs(env).envs(OWN.split(' ').zip(own));
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        command
    }

    /// The text of its standard input.
    pub(super) fn stdin(&self) -> Option<&str> {
        self.payload.stdin.as_deref()
    }

    /// Whether this exit code is a success.
    pub(super) fn expects(&self, code: i32) -> bool {
        self.payload.expect_exit.iter().any(|expected| i32::from(*expected) == code)
    }

    /// The error for a program that did not start. A lack of processes, files or memory is
    /// temporary; a program that does not exist or cannot be executed is not.
    pub(super) fn cannot_start(&self, error: &io::Error) -> HandlerError {
        let Payload { argv, cwd, .. } = &self.payload;
        let directory = cwd.as_ref().map_or(String::new(), |cwd| format!(" in {cwd:?}"));
        let message = format!("cannot start {:?}{directory}: {error}", argv[0]);
        match Errno::from_io_error(error) {
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::TXTBSY) => {
                HandlerError::retry("SHELL_START", message)
            }
            _ => HandlerError::fail("SHELL_START", message),
        }
    }
}

fn check(payload: &Payload) -> Result<(), String> {
    let Payload { argv, env, cwd, stdin: _, expect_exit } = payload;
    if argv.first().is_none_or(String::is_empty) {
        return Err("argv must begin with a program".to_owned());
    }
    limit("argv", argv.len(), argv.iter().map(String::len))?;
    limit("env", env.len(), env.iter().map(|(name, value)| name.len() + 1 + value.len()))?;
    for name in env.keys() {
        if name.is_empty() || name.contains('=') {
            return Err(format!("env: {name:?} is no name"));
        }
        if OWN.split(' ').any(|own| own == name) {
            return Err(format!("env: {name} cannot be set"));
        }
    }
    if cwd.as_ref().is_some_and(String::is_empty) {
        return Err("cwd must not be empty".to_owned());
    }
    let mut texts = argv.iter().chain(env.keys()).chain(env.values()).chain(cwd);
    if texts.any(|text| text.contains('\0')) {
        return Err("argv, env and cwd must not hold U+0000".to_owned());
    }
    if expect_exit.is_empty() {
        return Err("expectExit must name an exit code".to_owned());
    }
    Ok(())
}

/// Counts one byte more for each string, as the kernel does.
fn limit(what: &str, count: usize, lengths: impl Iterator<Item = usize>) -> Result<(), String> {
    if count > ITEMS || lengths.map(|length| length + 1).sum::<usize>() > BYTES {
        return Err(format!("{what} must have at most {ITEMS} items and {BYTES} bytes"));
    }
    Ok(())
}
