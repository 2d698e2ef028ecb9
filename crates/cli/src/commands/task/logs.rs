//! `duly task logs`.

use std::time::Duration;

use duly_client::wire::{LogPageView, LogPartView};
use duly_client::{Client, Error, LogQuery};

use crate::args::{LogOutput, LogsArgs, TaskRef};
use crate::exit::Ending;
use crate::output;

/// How long one request waits for more.
const WAIT: Duration = Duration::from_secs(30);
/// How long to leave a server that is away alone, if it does not say.
const AWAY: Duration = Duration::from_secs(1);

pub(super) async fn run(args: &LogsArgs) -> anyhow::Result<Ending> {
    let client = Client::new(&args.server.server, args.server.token.as_deref())?;
    let mut tail = Tail::new(args.id.clone(), args.epoch);
    let (mut all, mut pieces, mut seen) = (Vec::new(), 0_u64, Seen::default());
    let mut stamps = Stamps::default();
    let mut page = tail.next(&client, args.follow).await?;
    while !page.items.is_empty() || (args.follow && page.live) {
        pieces += page.items.len() as u64;
        for part in page.items {
            if let Some(dropped) = seen.take(&part) {
                output::say(&format!("… {} dropped", output::count(dropped, "byte")));
            }
            match args.output {
                LogOutput::Text if args.timestamps => output::log(&stamps.mark(&part))?,
                LogOutput::Text => output::log(&part.text)?,
                LogOutput::Ndjson => output::json_line(&part)?,
                LogOutput::Json => all.push(part),
            }
        }
        page = if args.follow {
            tail.follow(&client).await?
        } else {
            tail.next(&client, false).await?
        };
    }
    let live = page.live;
    if args.output == LogOutput::Json {
        output::json(&all)?;
    }
    say_next(args, pieces, live);
    Ok(Ending::Ok)
}

fn say_next(args: &LogsArgs, pieces: u64, live: bool) {
    let id = &args.id;
    let nothing = if pieces == 0 { "nothing was logged; " } else { "" };
    output::say(&if live {
        format!("{nothing}more may come: duly task logs {id} --follow")
    } else {
        format!("{nothing}next: duly task get {id}")
    });
}

/// Reads the logs of a task, page by page.
pub(super) struct Tail {
    id: TaskRef,
    epoch: Option<u32>,
    next: Option<String>,
}

impl Tail {
    pub(super) fn new(id: TaskRef, epoch: Option<u32>) -> Self {
        Self { id, epoch, next: None }
    }

    /// The next page after a wait for more. A server that is away for a while does not end it.
    async fn follow(&mut self, client: &Client) -> Result<LogPageView, Error> {
        let mut told = false;
        loop {
            let error = match self.next(client, true).await {
                Err(error) if error.is_retryable() => error,
                answer => return answer,
            };
            if !std::mem::replace(&mut told, true) {
                output::say(&format!("{error}\ntrying again until it answers; Ctrl-C stops"));
            }
            tokio::time::sleep(error.retry_after().unwrap_or(AWAY).clamp(AWAY, WAIT)).await;
        }
    }

    /// The next page, perhaps after a wait for more.
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

/// Up to where the log was read, to notice what is missing.
#[derive(Default)]
struct Seen {
    epoch: u32,
    end: u64,
}

impl Seen {
    /// Goes on to a piece; how many bytes before it were not kept, if some were not.
    fn take(&mut self, part: &LogPartView) -> Option<u64> {
        let known = if self.epoch == part.epoch { self.end } else { 0 };
        *self = Self { epoch: part.epoch, end: part.offset + part.text.len() as u64 };
        part.offset.checked_sub(known).filter(|dropped| *dropped > 0)
    }
}

/// Puts the time of arrival before each line.
#[derive(Default)]
struct Stamps {
    /// Whether the last piece ended within a line.
    is_open: bool,
}

impl Stamps {
    /// The text of a piece with the time before every line that begins in it.
    fn mark(&mut self, part: &LogPartView) -> String {
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
        let mut stamps = Stamps::default();
        let part = |text: &str| LogPartView {
            run: 1,
            attempt: 1,
            epoch: 1,
            offset: 0,
            at: Timestamp::from_millis(1_900_000_000_000),
            text: text.to_owned(),
        };
        let at = Timestamp::from_millis(1_900_000_000_000);
        assert_eq!(stamps.mark(&part("a\nb")), format!("{at} a\n{at} b"));
        assert_eq!(stamps.mark(&part("c\nd\n")), format!("c\n{at} d\n"));
        assert_eq!(stamps.mark(&part("e\n")), format!("{at} e\n"));
    }

    #[test]
    fn what_is_missing_is_counted_in_each_attempt() {
        let mut seen = Seen::default();
        for (epoch, offset, text, dropped) in [
            (1, 0, "añb", None),
            (1, 4, "c", None),
            (1, 7, "d", Some(2)),
            (2, 0, "e", None),
            (4, 9, "f", Some(9)),
        ] {
            let (at, text) = (Timestamp::EPOCH, text.to_owned());
            let part = LogPartView { run: 1, attempt: 1, epoch, offset, at, text };
            assert_eq!(seen.take(&part), dropped, "{part:?}");
        }
    }
}
