//! Showing something again and again on a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::bail;
use tokio::time::MissedTickBehavior;

use crate::args::Output;
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;

/// How often it is shown anew.
const REDRAW: Duration = Duration::from_secs(2);
/// Moves to the upper left corner and clears all below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What is shown: a table, and a remark below it.
pub(super) type Shown = (String, String);

/// Shows what `ask` gets until Ctrl-C. A server that is away for a while does not end it, as long
/// as it was there at the start.
pub(super) async fn watch<A>(format: Output, mut ask: A) -> anyhow::Result<Ending>
where
    A: AsyncFnMut() -> Result<Shown, duly_client::Error>,
{
    if format != Output::Table {
        bail!("--watch shows a table; leave `-o` out, or leave --watch out and ask again yourself");
    }
    if !std::io::stdout().is_terminal() {
        bail!("--watch needs a terminal; for a program, ask with `-o json` as often as you like");
    }
    let mut signals = Signals::new()?;
    let mut ticks = tokio::time::interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = signals.next() => return Ok(Ending::Ok),
        }
        let answer = tokio::select! {
            answer = ask() => answer,
            () = signals.next() => return Ok(Ending::Ok),
        };
        match answer {
            Ok((table, remark)) => {
                output::data(&format!("{CLEAR}{table}"))?;
                output::say(&format!("\n{remark}every 2 s, Ctrl-C ends it"));
                shown = true;
            }
            Err(error) if shown => output::say(&format!("{error}; trying again")),
            Err(error) => return Err(error.into()),
        }
    }
}
