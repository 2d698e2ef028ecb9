//! Shows a bulk action: a bar on a terminal, lines without one, a table at the end.

use std::io::IsTerminal as _;
use std::time::Duration;

use duly_client::wire::BulkView;
use duly_core::state::Status;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Output;
use crate::exit::Ending;
use crate::output::{self, Paint};

/// How often progress is shown.
pub(super) const REDRAW: Duration = Duration::from_secs(1);

/// Prints one bulk action.
pub(super) fn print_one(bulk: &BulkView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(bulk),
        Output::Table => output::data(&table_of(std::slice::from_ref(bulk))),
        Output::Id => output::data(&bulk.bulk_id.to_string()),
    }
}

pub(super) fn table_of(bulks: &[BulkView]) -> String {
    let header = ["id", "action", "status", "done", "total", "skipped", "given at", "filter"];
    let mut table = output::table(&header)
        .shorten(&["filter"], 12)
        .leave_out(&["given at", "skipped", "total"])
        .paint("status", Paint::STATUS);
    for bulk in bulks {
        table.add_row([
            bulk.bulk_id.to_string(),
            bulk.action.clone(),
            bulk.status.to_string(),
            bulk.done.to_string(),
            bulk.total.map_or("-".to_owned(), |total| total.to_string()),
            bulk.skipped.to_string(),
            bulk.created_at.to_string(),
            selection(bulk),
        ]);
    }
    output::render(&table)
}

/// The tasks that it applies to.
fn selection(bulk: &BulkView) -> String {
    if bulk.dead_letters {
        return format!("dead letters {}", bulk.filter).trim_end().to_owned();
    }
    bulk.filter.clone()
}

/// The ending of the command for this bulk action.
pub(super) fn ending(bulk: &BulkView) -> Ending {
    if let Some(error) = &bulk.error {
        output::say(&format!("{}: {}", bulk.status, output::failure(error)));
    }
    match bulk.status {
        Status::Failed | Status::Cancelled => Ending::TaskFailed,
        Status::Success | Status::Pending | Status::Running | Status::Blocked => Ending::Ok,
    }
}

/// Progress on standard error.
pub(super) struct Bar {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    said: Option<u64>,
}

impl Bar {
    pub(super) fn new(bulk: &BulkView) -> Self {
        let draw = || {
            let style = ProgressStyle::with_template("[{bar:24}] {pos}/{len} {msg}");
            let style = style.expect("a template").progress_chars("#>-");
            ProgressBar::new(bulk.total.unwrap_or(0)).with_style(style)
        };
        Self { bar: std::io::stderr().is_terminal().then(draw), said: None }
    }

    pub(super) fn show(&mut self, bulk: &BulkView) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(bulk.total.unwrap_or(bulk.done));
                bar.set_position(bulk.done);
                bar.set_message(format!(
                    "{}; Ctrl-C stops watching, the action continues",
                    bulk.status
                ));
            }
            None if self.said != Some(bulk.done) => {
                let total = bulk.total.map_or(String::new(), |total| format!(" of {total}"));
                output::say(&format!("{}: {}{total} done", bulk.status, bulk.done));
                self.said = Some(bulk.done);
            }
            None => {}
        }
    }

    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::say(text)),
            None => output::say(text),
        }
    }

    pub(super) fn end(&mut self, bulk: &BulkView) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => self.show(bulk),
        }
    }
}
