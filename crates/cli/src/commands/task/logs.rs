//! `duly task logs`.

use std::time::Duration;

use duly_client::wire::LogPageView;
use duly_client::{Client, LogQuery};
use duly_core::id::TaskId;

use crate::args::{LogOutput, LogsArgs};
use crate::exit::Ending;
use crate::output;

/// How long one request waits for more.
const WAIT: Duration = Duration::from_secs(30);

pub(super) async fn run(args: &LogsArgs) -> anyhow::Result<Ending> {
    let client = Client::new(&args.server.server, args.server.token.as_deref())?;
    let mut tail = Tail::new(args.id, args.epoch);
    let (mut all, mut pieces) = (Vec::new(), 0_u64);
    let live = loop {
        let page = tail.next(&client, args.follow).await?;
        pieces += page.items.len() as u64;
        match args.output {
            LogOutput::Text => page.items.iter().try_for_each(|part| output::log(&part.text))?,
            LogOutput::Ndjson => page.items.iter().try_for_each(output::json_line)?,
            LogOutput::Json => all.extend(page.items.iter().cloned()),
        }
        if page.items.is_empty() && !(args.follow && page.live) {
            break page.live;
        }
    };
    if args.output == LogOutput::Json {
        output::json(&all)?;
    }
    say_next(args, pieces, live);
    Ok(Ending::Ok)
}

fn say_next(args: &LogsArgs, pieces: u64, live: bool) {
    let id = args.id;
    let nothing = if pieces == 0 { "nothing was logged; " } else { "" };
    output::say(&if live {
        format!("{nothing}more may come: duly task logs {id} --follow")
    } else {
        format!("{nothing}next: duly task get {id}")
    });
}

/// Reads the logs of a task, page by page.
pub(super) struct Tail {
    id: TaskId,
    epoch: Option<u32>,
    next: Option<String>,
}

impl Tail {
    pub(super) fn new(id: TaskId, epoch: Option<u32>) -> Self {
        Self { id, epoch, next: None }
    }

    /// The next page, perhaps after a wait for more.
    pub(super) async fn next(
        &mut self,
        client: &Client,
        waits: bool,
    ) -> anyhow::Result<LogPageView> {
        let (epoch, after) = (self.epoch, self.next.as_deref());
        let query = LogQuery { epoch, after, wait: waits.then_some(WAIT) };
        let page = client.task_logs(self.id, query).await?;
        self.next = Some(page.next.clone());
        Ok(page)
    }
}
