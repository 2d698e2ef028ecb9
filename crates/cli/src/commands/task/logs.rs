//! `duly task logs`.

use std::time::Duration;

use duly_client::wire::{LogPageView, LogPartView};
use duly_client::{Client, Error, LogQuery};

use crate::args::{LogOutput, LogsArgs, TaskRef};
use crate::exit::Ending;
use crate::output;

/// How long one request waits for more.
const WAIT: Duration = Duration::from_secs(30);
/// The wait before a retry, if the server names none.
const RETRY_WAIT: Duration = Duration::from_secs(1);

pub(super) async fn run(args: &LogsArgs) -> anyhow::Result<Ending> {
    let client = args.server.connect()?;
    let mut logs = LogReader::new(args.id.clone(), args.epoch);
    let (mut all, mut pieces, mut cursor) = (Vec::new(), 0_u64, LogCursor::default());
    let mut stamps = LinePrefixer::default();
    let mut page = logs.next(&client, args.follow).await?;
    while !page.items.is_empty() || (args.follow && page.live) {
        pieces += page.items.len() as u64;
        for part in page.items {
            if let Some(dropped) = cursor.advance(&part) {
                output::say(&format!("… {} dropped", output::count(dropped, "byte")));
            }
            match args.output {
                LogOutput::Text if args.timestamps => output::log(&stamps.prefix_lines(&part))?,
                LogOutput::Text => output::log(&part.text)?,
                LogOutput::Ndjson => output::json_line(&part)?,
                LogOutput::Json => all.push(part),
            }
        }
        page = if args.follow {
            logs.follow(&client).await?
        } else {
            logs.next(&client, false).await?
        };
    }
    let live = page.live;
    if args.output == LogOutput::Json {
        output::json(&all)?;
    }
    print_next(args, pieces, live);
    Ok(Ending::Ok)
}

fn print_next(args: &LogsArgs, pieces: u64, live: bool) {
    let id = &args.id;
    let nothing = if pieces == 0 { "nothing was logged; " } else { "" };
    output::say(&if live {
        format!("{nothing}the task is not finished; next: duly task logs {id} --follow")
    } else {
        format!("{nothing}next: duly task get {id}")
    });
}

/// Reads the logs of a task, page by page.
pub(super) struct LogReader {
    id: TaskRef,
    epoch: Option<u32>,
    next: Option<String>,
}

impl LogReader {
    pub(super) fn new(id: TaskRef, epoch: Option<u32>) -> Self {
        Self { id, epoch, next: None }
    }

    /// Waits for the next page. Retries while the server is away.
    pub(super) async fn follow(&mut self, client: &Client) -> Result<LogPageView, Error> {
        let mut is_reported = false;
        loop {
            let error = match self.next(client, true).await {
                Err(error) if error.is_retryable() => error,
                answer => return answer,
            };
            if !std::mem::replace(&mut is_reported, true) {
                output::say(&format!("{error}\nretrying until it answers; Ctrl-C stops"));
            }
            tokio::time::sleep(error.retry_after().unwrap_or(RETRY_WAIT).clamp(RETRY_WAIT, WAIT))
                .await;
        }
    }

    /// The next page; `waits` waits for more.
    pub(super) async fn next(
        &mut self,
        client: &Client,
        waits: bool,
    ) -> Result<LogPageView, Error> {
        let (epoch, after) = (self.epoch, self.next.as_deref());
        let query = LogQuery { epoch, after, wait: waits.then_some(WAIT) };
        let page = client.task_logs(&self.id, query).await?;
        self.next = Some(page.next.clone());
        Ok(page)
    }
}

/// The position up to which the log was read, to notice gaps.
#[derive(Default)]
struct LogCursor {
    epoch: u32,
    end: u64,
}

impl LogCursor {
    /// Advances past a piece; returns how many bytes before it are missing, if any.
    fn advance(&mut self, part: &LogPartView) -> Option<u64> {
        let known = if self.epoch == part.epoch { self.end } else { 0 };
        *self = Self { epoch: part.epoch, end: part.offset + part.text.len() as u64 };
        part.offset.checked_sub(known).filter(|dropped| *dropped > 0)
    }
}

/// Prefixes each line with its arrival time.
#[derive(Default)]
struct LinePrefixer {
    /// Whether the last piece ended within a line.
    is_open: bool,
}

impl LinePrefixer {
    /// The text of a piece with the time before every line that starts in it.
    fn prefix_lines(&mut self, part: &LogPartView) -> String {
        let mut text = String::new();
        for line in part.text.split_inclusive('\n') {
            if !self.is_open {
                text += &format!("{} ", part.at);
            }
            text += line;
            self.is_open = !line.ends_with('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;

    #[test]
    fn every_line_gets_one_time() {
        let mut stamps = LinePrefixer::default();
        let part = |text: &str| LogPartView {
            run: 1,
            attempt: 1,
            epoch: 1,
            offset: 0,
            at: Timestamp::from_millis(1_900_000_000_000),
            text: text.to_owned(),
        };
        let at = Timestamp::from_millis(1_900_000_000_000);
        assert_eq!(stamps.prefix_lines(&part("a\nb")), format!("{at} a\n{at} b"));
        assert_eq!(stamps.prefix_lines(&part("c\nd\n")), format!("c\n{at} d\n"));
        assert_eq!(stamps.prefix_lines(&part("e\n")), format!("{at} e\n"));
    }

    #[test]
    fn what_is_missing_is_counted_in_each_attempt() {
        let mut cursor = LogCursor::default();
        for (epoch, offset, text, dropped) in [
            (1, 0, "añb", None),
            (1, 4, "c", None),
            (1, 7, "d", Some(2)),
            (2, 0, "e", None),
            (4, 9, "f", Some(9)),
        ] {
            let (at, text) = (Timestamp::EPOCH, text.to_owned());
            let part = LogPartView { run: 1, attempt: 1, epoch, offset, at, text };
            assert_eq!(cursor.advance(&part), dropped, "{part:?}");
        }
    }
}
