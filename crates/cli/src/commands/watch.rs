//! Refreshes a table on a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::bail;
use tokio::time::MissedTickBehavior;

use crate::args::Output;
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;

/// The interval of refreshes.
const REDRAW: Duration = Duration::from_secs(2);
/// Clears the terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// A table, and a remark below it.
pub(super) type Frame = (String, String);

/// Shows the frames of `fetch` until Ctrl-C. After the first frame, errors are printed and retried.
pub(super) async fn watch<A>(format: Output, mut fetch: A) -> anyhow::Result<Ending>
where
    A: AsyncFnMut() -> Result<Frame, duly_client::Error>,
{
    if format != Output::Table {
        bail!("--watch shows a table; omit -o, or omit --watch and repeat the command yourself");
    }
    if !std::io::stdout().is_terminal() {
        bail!("--watch needs a terminal; in a program, repeat the command with -o json instead");
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
            answer = fetch() => answer,
            () = signals.next() => return Ok(Ending::Ok),
        };
        match answer {
            Ok((table, remark)) => {
                output::data(&format!("{CLEAR}{table}"))?;
                output::say(&format!("\n{remark}refreshed every 2 s; Ctrl-C stops"));
                shown = true;
            }
            Err(error) if shown => output::say(&format!("{error}; trying again")),
            Err(error) => return Err(error.into()),
        }
    }
}
