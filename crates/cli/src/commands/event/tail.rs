//! `duly event tail`: events as they happen, a line each, until Ctrl-C. A lost connection comes back by
//! itself.

use duly_client::wire::{CloudEvent, TaskView};
use duly_client::{StreamItem, StreamQuery};

use crate::args::{EventTailArgs, Output};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output::{self, Paint};
use crate::signals::Signals;

/// The longest name of a kind.
const KIND_CHARS: usize = 16;
/// Characters of what there is to say of an event.
const DETAIL_CHARS: usize = 80;

pub(super) async fn run(args: &EventTailArgs) -> anyhow::Result<Ending> {
    let mut signals = Signals::new()?;
    let query = StreamQuery {
        topics: vec!["events".to_owned()],
        filter: args.filter.text(),
        since: args.since.clone(),
    };
    let mut stream = connect(&args.client)?.follow(query).await?;
    output::say("following events; Ctrl-C stops");
    let mut left = args.limit;
    while left != Some(0) {
        let item = tokio::select! {
            item = stream.next() => item?,
            () = signals.next() => return Ok(Ending::Ok),
        };
        match item {
            StreamItem::Event(event) => {
                if !output::line(&text(&event, args.client.output)?)? {
                    // Nobody reads any more.
                    return Ok(Ending::Ok);
                }
                left = left.map(|left| left - 1);
            }
            StreamItem::Interrupted(why) => output::say(&format!("{why}; connecting again")),
            StreamItem::Resumed => output::say("connected again"),
            StreamItem::Reset => output::say("events were missed: they are no longer kept"),
            // Other topics have these.
            StreamItem::Stats(_)
            | StreamItem::Task(_)
            | StreamItem::Workflow(_)
            | StreamItem::Gone(_) => {}
        }
    }
    Ok(Ending::Ok)
}

fn text(event: &CloudEvent, format: Output) -> anyhow::Result<String> {
    Ok(match format {
        Output::Json => serde_json::to_string(event)?,
        Output::Id => output::sanitize(&event.subject),
        Output::Table => line(event),
    })
}

/// `2030-01-31T08:00:00.000Z  task.failed       <id>  email  default  TIMEOUT: …`
fn line(event: &CloudEvent) -> String {
    let kind = event.kind().map_or(event.r#type.as_str(), |kind| kind.name());
    let kind = output::painted(&output::sanitize(kind), KIND_CHARS, Paint::EVENT);
    let subject = output::sanitize(&event.subject);
    let detail = match event.task() {
        Some(task) => about(&task),
        None => event.data.get().to_owned(),
    };
    let detail: String = detail.chars().take(DETAIL_CHARS).collect();
    format!("{}  {kind}  {subject}  {}", event.time, output::sanitize(&detail))
}

/// Type and queue, and why the last attempt failed.
fn about(task: &TaskView) -> String {
    let failure = task.error.as_ref().map(|error| format!("  {}", output::failure(error)));
    format!("{}  {}{}", task.r#type, task.queue, failure.unwrap_or_default())
}
