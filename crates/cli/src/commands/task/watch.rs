//! `duly task watch`: follows a task until its outcome. Its log goes to standard output, everything
//! else to standard error: a bar on a terminal, a line per change without one.

use std::io::{IsTerminal as _, Write as _};

use duly_client::wire::{ProgressView, TaskView};
use duly_client::{Client, EventStream, StreamItem, StreamQuery};
use duly_core::id::TaskId;
use duly_core::state::Status;

use super::failure_suffix;
use super::logs::LogReader;
use crate::args::WatchArgs;
use crate::exit::Ending;
use crate::output;

const BAR_CELLS: usize = 24;
/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

pub(super) async fn run(args: &WatchArgs) -> anyhow::Result<Ending> {
    let client = args.server.connect()?;
    let mut task = client.get_task(&args.id, None).await?;
    let mut screen = Screen { is_terminal: std::io::stderr().is_terminal(), ..Screen::default() };
    let mut logs = LogReader::new(args.id.clone(), None);
    let topics = vec![format!("task:{}", task.task_id)];
    let mut stream = client.follow_later(StreamQuery { topics, ..StreamQuery::default() });
    screen.show(&task);
    // The task is read before its log: if it had ended by then, the log was complete.
    while !print_log(&client, &mut logs, &mut screen).await? || !task.status.is_terminal() {
        if !task.status.is_terminal() {
            task = next_change(&client, task.task_id, &mut stream, &mut logs, &mut screen).await?;
            screen.show(&task);
        }
    }
    screen.clear();
    Ok(conclude(&task))
}

/// Prints the available log; returns whether it was all.
async fn print_log(
    client: &Client,
    logs: &mut LogReader,
    screen: &mut Screen,
) -> anyhow::Result<bool> {
    let page = logs.next(client, false).await?;
    screen.log(page.items.iter().map(|part| part.text.as_str()))?;
    Ok(page.items.is_empty())
}

/// Waits until the task has changed, and prints the log meanwhile.
async fn next_change(
    client: &Client,
    id: TaskId,
    stream: &mut EventStream,
    logs: &mut LogReader,
    screen: &mut Screen,
) -> anyhow::Result<TaskView> {
    let mut more = true;
    loop {
        tokio::select! {
            biased;
            item = stream.next() => match item? {
                StreamItem::Task(task) => return Ok(*task),
                // The answer says why.
                StreamItem::Gone(_) => return Ok(client.get_task(id, None).await?),
                StreamItem::Interrupted(why) => {
                    screen.clear();
                    output::say(&format!("{why}; connecting again"));
                }
                _ => {}
            },
            page = logs.follow(client), if more => {
                let page = page?;
                screen.log(page.items.iter().map(|part| part.text.as_str()))?;
                more = page.live;
            }
        }
    }
}

fn conclude(task: &TaskView) -> Ending {
    let (id, status) = (task.task_id, task.status);
    let attempts = output::count(task.attempt, "attempt");
    match status {
        Status::Success => {
            output::say(&format!("{id} {status} in {attempts}; next: duly task get {id}"));
            Ending::Ok
        }
        _ => {
            output::say(&format!("{id} {status} after {attempts}{}", failure_suffix(task)));
            output::say(&format!("next: duly task attempts {id}, then duly task replay {id}"));
            Ending::TaskFailed
        }
    }
}

/// The output on standard error.
#[derive(Default)]
struct Screen {
    is_terminal: bool,
    is_drawn: bool,
    status: Option<(Status, u32)>,
    progress: Option<String>,
}

impl Screen {
    /// Shows changes.
    fn show(&mut self, task: &TaskView) {
        let status = (task.status, task.attempt);
        if self.status.replace(status) != Some(status) {
            self.clear();
            let of = format!("attempt {} of {}", task.attempt, task.retries + 1);
            output::say(&format!("{} {}, {of}", task.task_id, task.status));
        }
        let text = task.progress.as_ref().map(text);
        if text.is_some() && text != self.progress {
            self.progress = text;
            self.draw(task.progress.as_ref().and_then(|progress| progress.percent));
        }
    }

    fn draw(&mut self, percent: Option<u8>) {
        let Some(text) = &self.progress else { return };
        if self.is_terminal {
            let bar = percent.map(bar).unwrap_or_default();
            // A closed standard error is not a failure.
            write!(std::io::stderr().lock(), "{CLEAR}{bar}{}", output::sanitize(text)).ok();
            self.is_drawn = true;
        } else {
            output::say(text);
        }
    }

    /// Prints lines of the log.
    fn log<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
        for text in texts {
            self.clear();
            output::log(text)?;
        }
        Ok(())
    }

    /// Removes the bar.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write!(std::io::stderr().lock(), "{CLEAR}").ok();
        }
    }
}

fn text(progress: &ProgressView) -> String {
    let message = progress.message.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
    format!("{}{message}", output::progress(progress))
}

fn bar(percent: u8) -> String {
    let full = usize::from(percent) * BAR_CELLS / 100;
    format!("[{}{}] ", "#".repeat(full), "-".repeat(BAR_CELLS.saturating_sub(full)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_at_the_end() {
        assert_eq!(bar(0), format!("[{}] ", "-".repeat(24)));
        assert_eq!(bar(50), format!("[{}{}] ", "#".repeat(12), "-".repeat(12)));
        assert!(bar(99).contains('-') && !bar(100).contains('-'));
    }
}
