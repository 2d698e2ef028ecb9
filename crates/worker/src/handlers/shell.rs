//! Runs a program, if the operator allows it: a client that submits such a task runs code as the
//! worker's user.
//!
//! A program and the processes it starts share a process group, which never outlives the attempt.
//! When the time limit is over or the lease is gone, the group gets SIGTERM, then SIGKILL; when the
//! worker drops the attempt, SIGKILL at once.

mod about;
mod output;
mod process_group;
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
use self::output::Output as Printed;
use self::process_group::ProcessGroup;
use self::program::{INHERITED, Program};
use crate::handler::{Context, Handler, HandlerError, Output};

/// How long a program may take to end after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long output is read after the program has ended: a process that it left running may keep
/// the pipes open for ever.
const OUTPUT_GRACE: Duration = Duration::from_millis(250);

/// The type `shell`; its payload is `{argv, env?, cwd?, stdin?, expectExit?}`.
#[derive(Clone, Debug)]
pub struct Shell {
    inherited: Vec<(OsString, OsString)>,
}

impl Shell {
    /// A handler whose programs inherit a few variables of this environment.
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
        // Dropped before the child, so that the id still belongs to it.
        let group = ProcessGroup::of(&child);
        let mut stdout = Printed::new(&context);
        let mut stderr = Printed::new(&context);
        let ended = {
            let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let feed = feed(stdin, program.stdin());
            let pipes = async { tokio::join!(feed, stdout.read(out), stderr.read(err)) };
            let pipes = pin!(maybe_done(pipes));
            wait_or_terminate(&context, &mut child, &group, pipes).await?
        };
        let status = ended.map_err(|error| {
            HandlerError::retry("SHELL_EXIT", format!("cannot tell how the program ended: {error}"))
        })?;
        stdout.end();
        stderr.end();
        // Well-behaved programs print their reasons to standard error.
        let last_line = [stderr.last_line(), stdout.last_line()];
        let last_line = last_line.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
        let exit = check_exit(&program, status, last_line)?;
        let seconds = (started.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let (signal, stdout_tail) = (status.signal(), stdout.tail());
        Output::json(&Ran { exit, signal, seconds, stdout_tail })
    }

    /// Time for the signals and the last output, and a little more, so that the handler ends by
    /// itself.
    fn cleanup_time(&self) -> Duration {
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

/// Waits until the program has ended. Terminates its process group when the time limit is over or
/// the lease is gone.
async fn wait_or_terminate(
    context: &Context,
    child: &mut Child,
    group: &ProcessGroup,
    mut pipes: Pin<&mut impl Future<Output = ()>>,
) -> Result<io::Result<ExitStatus>, HandlerError> {
    let limit = context.lease().time_limit();
    let reason = tokio::select! {
        // The program comes last: endless output must not starve the other branches.
        biased;
        () = context.cancelled() => HandlerError::Release,
        () = sleep(limit) => {
            let message = format!("the program took longer than {} s", limit.as_secs_f64());
            HandlerError::retry("TIMEOUT", message)
        }
        ended = ended(child, pipes.as_mut()) => return Ok(ended),
    };
    group.send(Signal::TERM);
    // The pipes end when the last process that has them open has ended. Dropping the group kills
    // any other.
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
    let _ = timeout(OUTPUT_GRACE, pipes).await;
    Ok(status)
}

/// Writes the program's standard input and closes the pipe.
async fn feed(stdin: Option<ChildStdin>, text: Option<&str>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text) {
        // The write fails if the program does not read all of it, which is not an error.
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

/// The exit code, if the payload expects it.
fn check_exit(program: &Program, status: ExitStatus, last_line: &str) -> Result<i32, HandlerError> {
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
