//! `duly event sinks` and `duly event resume`.

use duly_client::wire::SinkView;

use crate::args::{EventSinksArgs, Output, SinkArgs};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output::{self, Paint};

pub(super) async fn list(args: &EventSinksArgs) -> anyhow::Result<Ending> {
    let sinks = connect(&args.client)?.list_sinks().await?;
    match args.client.output {
        Output::Json => output::json(&sinks)?,
        Output::Table if sinks.items.is_empty() => {
            output::say("no sinks: nobody receives events; next: duly event tail");
        }
        Output::Table => {
            output::data(&table_of(&sinks.items))?;
            if let Some(sink) = sinks.items.iter().find(|sink| sink.suspended.is_some()) {
                output::say(&format!("next: duly event resume {}", sink.name));
            }
        }
        Output::Id => {
            for sink in &sinks.items {
                output::data(&sink.name)?;
            }
        }
    }
    Ok(Ending::Ok)
}

pub(super) async fn resume(args: &SinkArgs) -> anyhow::Result<Ending> {
    let sink = connect(&args.client)?.resume_sink(&args.name).await?;
    match args.client.output {
        Output::Json => output::json(&sink)?,
        Output::Table => output::data(&table_of(std::slice::from_ref(&sink)))?,
        Output::Id => output::data(&sink.name)?,
    }
    output::say("next: duly event sinks");
    Ok(Ending::Ok)
}

pub(super) async fn remove(args: &SinkArgs) -> anyhow::Result<Ending> {
    connect(&args.client)?.remove_sink(&args.name).await?;
    output::say(&format!("removed {}; next: duly event sinks", args.name));
    Ok(Ending::Ok)
}

fn table_of(sinks: &[SinkView]) -> String {
    let header = ["name", "state", "behind", "lag", "node", "term", "position", "trouble"];
    let mut table = output::table(&header)
        .shorten(&["trouble"], 20)
        .leave_out(&["position", "term", "node"])
        .paint("state", Paint::HEALTH);
    for sink in sinks {
        let relay = sink.relay.as_ref();
        let none = || "-".to_owned();
        table.add_row([
            sink.name.clone(),
            state(sink).to_owned(),
            sink.lag_rows.to_string(),
            format!("{:.0} s", sink.lag_seconds),
            relay.map_or_else(none, |relay| relay.node_id.to_string()),
            relay.map_or_else(none, |relay| relay.term.to_string()),
            sink.position.clone(),
            trouble(sink).map_or_else(none, output::first_line),
        ]);
    }
    output::render(&table)
}

/// What a sink does: one with a window keeps events for readers, every other one is served by a node.
fn state(sink: &SinkView) -> &'static str {
    match sink {
        SinkView { suspended: Some(_), .. } => "SUSPENDED",
        SinkView { window_seconds: Some(_), .. } => "kept",
        SinkView { relay: Some(_), trouble: None, .. } => "active",
        SinkView { relay: Some(_), .. } => "warning",
        SinkView { relay: None, .. } => "not running",
    }
}

fn trouble(sink: &SinkView) -> Option<&str> {
    let suspended = sink.suspended.as_ref().map(|suspended| suspended.reason.as_str());
    suspended.or(sink.trouble.as_deref())
}
