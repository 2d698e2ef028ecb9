//! Running the binary on a terminal, as a person sees it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use anyhow::{Context as _, anyhow};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::prepare;
use crate::wait::within;

/// How a command ended and what the terminal showed.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The exit code; nothing if a signal ended it.
    pub code: Option<i32>,
    /// Both outputs and what was typed, as they came.
    pub screen: String,
}

/// Runs a command on a terminal of this width, types the text, and waits for its end.
pub async fn run(
    binary: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    columns: u16,
    typed: &str,
) -> anyhow::Result<Shown> {
    let (near, far) = open(columns)?;
    let mut command = prepare(binary, arguments, variables);
    command.stdin(Stdio::from(far.try_clone()?)).stdout(Stdio::from(far.try_clone()?));
    command.stderr(Stdio::from(far)).env("TERM", "xterm");
    let mut child = command.spawn()?;
    // It holds the far side too, and the screen would never end.
    drop(command);
    let mut keyboard = near.try_clone()?;
    keyboard.write_all(typed.as_bytes())?;
    let reader = thread::spawn(move || read(near));
    let status = within("the command ends", child.wait()).await??;
    let screen = reader.join().map_err(|_| anyhow!("the reader broke down"))?;
    Ok(Shown { code: status.code(), screen })
}

/// The two sides of a terminal: ours and that of the program.
fn open(columns: u16) -> anyhow::Result<(File, File)> {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("no terminal")?;
    grantpt(&near)?;
    unlockpt(&near)?;
    let name = ptsname(&near, Vec::new())?;
    let far = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    tcsetwinsize(&far, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(near), File::from(far)))
}

/// Everything until the program has closed its side, which is an error on ours.
fn read(mut near: File) -> String {
    let (mut screen, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = near.read(&mut buffer) {
        screen.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&screen).replace("\r\n", "\n")
}
