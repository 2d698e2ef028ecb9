//! Runs a program, for operators who allow it: whoever submits such a task runs code as the
//! worker's user.
//!
//! A program and all it starts share a process group, which never outlives the attempt: it is
//! asked to end when the time is up or the lease is gone, and killed if it does not, or at once
//! when the worker drops the attempt.

mod about;
mod group;
mod output;
mod program;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::maybe_done;
use rustix::process::Signal;
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, sleep, timeout};

pub(super) use self::about::REFERENCE;
use self::group::Group;
use self::output::Output as Printed;
use self::program::{INHERITED, Program};
use crate::handler::{Context, Handler, HandlerError, Output};

/// How long a program may take to end after it was asked to.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long output is read after the program has ended: what it left running may keep the pipes
/// open for ever.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The type `shell`; its payload is `{argv, env?, cwd?, stdin?, expectExit?}`.
#[derive(Clone, Debug)]
pub struct Shell {
    inherited: Vec<(OsString, OsString)>,
}

impl Shell {
    /// A handler that passes on the few variables of this environment that programs need.
    pub fn new(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let is_needed = |name: &OsString| INHERITED.split(' ').any(|needed| name == needed);
        Self { inherited: environment.into_iter().filter(|(name, _)| is_needed(name)).collect() }
    }
}

#[async_trait]
impl Handler for Shell {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let program = Program::new(&context)?;
        let started = Instant::now();
        let mut command = program.command(&self.inherited, &context);
        let mut child = command.spawn().map_err(|error| program.cannot_start(&error))?;
        // Dropped before the child is, so that its id still belongs to it.
        let group = Group::of(&child);
        let mut stdout = Printed::new(&context);
        let mut stderr = Printed::new(&context);
        let ended = {
            let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let feed = feed(stdin, program.stdin());
            let pipes = async { tokio::join!(feed, stdout.read(out), stderr.read(err)) };
            let pipes = pin!(maybe_done(pipes));
            attend(&context, &mut child, &group, pipes).await?
        };
        let status = ended.map_err(|error| {
            HandlerError::retry("SHELL_EXIT", format!("cannot tell how the program ended: {error}"))
        })?;
        stdout.end();
        stderr.end();
        // Programs give their reasons on standard error, if they know how to behave.
        let last_line = [stderr.last_line(), stdout.last_line()];
        let last_line = last_line.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
        let exit = judge(&program, status, last_line)?;
        let seconds = (started.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let (signal, stdout_tail) = (status.signal(), stdout.tail());
        Output::json(&Ran { exit, signal, seconds, stdout_tail })
    }

    /// For the signals and the last words; a little more than they take, so that it is the
    /// handler that ends.
    fn wind_up(&self) -> Duration {
        TERM_GRACE + Duration::from_secs(1)
    }
}

/// The result of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ran {
    exit: i32,
    signal: Option<i32>,
    seconds: f64,
    stdout_tail: String,
}

/// Waits until the program has ended, or ends it with all it started when its time is up or the
/// lease is gone.
async fn attend(
    context: &Context,
    child: &mut Child,
    group: &Group,
    mut pipes: Pin<&mut impl Future<Output = ()>>,
) -> Result<io::Result<ExitStatus>, HandlerError> {
    let limit = context.lease().time_limit();
    let reason = tokio::select! {
        // The program comes last: one that prints without end must not keep the others waiting.
        biased;
        () = context.cancelled() => HandlerError::Release,
        () = sleep(limit) => {
            let message = format!("the program took longer than {} s", limit.as_secs_f64());
            HandlerError::retry("TIMEOUT", message)
        }
        ended = ended(child, pipes.as_mut()) => return Ok(ended),
    };
    group.send(Signal::TERM);
    // The pipes tell when the last of the group has gone, unless it prints elsewhere. Those that
    // are left then are killed when the group is dropped.
    let gone = timeout(TERM_GRACE, async { tokio::join!(child.wait(), pipes) }).await;
    let manner = if gone.is_ok() { "ended when asked to" } else { "was killed" };
    context.log(format_args!("{reason}; it {manner}"));
    Err(reason)
}

/// Waits until the program has ended and its output was read.
async fn ended(
    child: &mut Child,
    mut pipes: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<ExitStatus> {
    let status = tokio::select! {
        biased;
        status = child.wait() => status?,
        () = pipes.as_mut() => return child.wait().await,
    };
    let _ = timeout(LAST_WORDS, pipes).await;
    Ok(status)
}

/// Writes what the program is to read and closes the pipe.
async fn feed(stdin: Option<ChildStdin>, text: Option<&str>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text) {
        // A program need not read all it is given.
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

/// The exit code, if it is one that counts as success.
fn judge(program: &Program, status: ExitStatus, last_line: &str) -> Result<i32, HandlerError> {
    let message = || match last_line {
        "" => format!("the program ended with {status}"),
        line => format!("the program ended with {status}: {line}"),
    };
    match status.code() {
        Some(code) if program.expects(code) => Ok(code),
        Some(_) => Err(HandlerError::retry("SHELL_EXIT", message())),
        None => Err(HandlerError::retry("SHELL_SIGNAL", message())),
    }
}
