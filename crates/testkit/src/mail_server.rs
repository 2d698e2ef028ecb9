//! An SMTP server for tests: `scripts/mail-server`, which is aiosmtpd. It reads the mails that arrive
//! with Python's own library, so that another program than ours says what they are.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Once;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::report::variable;
use crate::wait::within;

/// Names the Python that has aiosmtpd.
const VARIABLE: &str = "DULY_TEST_SMTP";

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct MailServer {
    port: u16,
    mails: Lines<BufReader<ChildStdout>>,
    /// The server ends when this does.
    _input: ChildStdin,
    _child: Child,
}

impl MailServer {
    /// Starts a server with these flags. `None`, with a note, where none is installed; in CI this is an
    /// error.
    pub async fn start(flags: &[&str]) -> anyhow::Result<Option<Self>> {
        static SAID: Once = Once::new();
        let Some(python) = variable(VARIABLE) else {
            if variable("CI").is_some_and(|value| value == "true") {
                bail!("{VARIABLE} names no Python with aiosmtpd");
            }
            let note = format!(
                "SKIPPED mail server: {VARIABLE} is not set; export {VARIABLE}=$(scripts/mail-server install)"
            );
            // Not by a macro: those are silent while a test passes.
            SAID.call_once(|| drop(writeln!(std::io::stderr().lock(), "{note}")));
            return Ok(None);
        };
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mail-server.py");
        let mut child = Command::new(python)
            .arg(program)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the mail server does not start")?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let mut server =
            Self { port: 0, mails: BufReader::new(output).lines(), _input: input, _child: child };
        let port = server.mail().await?["port"].as_u64().context("no port")?;
        server.port = u16::try_from(port)?;
        Ok(Some(server))
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next mail that arrives.
    pub async fn mail(&mut self) -> anyhow::Result<Value> {
        let line = within("a mail arrives", self.mails.next_line()).await??;
        Ok(serde_json::from_str(&line.context("the mail server has ended")?)?)
    }
}
