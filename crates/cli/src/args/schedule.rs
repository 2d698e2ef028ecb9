//! Flags of `duly schedule`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use duly_core::schedule::{Misfire, Overlap};
use duly_core::time::Timestamp;

use super::{ClientArgs, duration, label};

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Create a schedule of a task, and show its next runs
    Create(Box<ScheduleCreateArgs>),
    /// Create or replace the schedules of a file
    Apply(ScheduleApplyArgs),
    /// List schedules by name
    List(ScheduleListArgs),
    /// Show a schedule
    Get(ScheduleNameArgs),
    /// Show the next runs of a schedule
    Next(ScheduleNextArgs),
    /// Show the last runs of a schedule, newest first, and why others were skipped
    Runs(ScheduleNameArgs),
    /// Stop a schedule; what it has started continues
    Pause(SchedulePauseArgs),
    /// Start a paused schedule again
    Resume(ScheduleNameArgs),
    /// Run a schedule now, also while it is paused
    Trigger(ScheduleNameArgs),
    /// Run slots of the past that have not run before
    Backfill(ScheduleBackfillArgs),
    /// Delete a schedule; what it has started continues
    Delete(ScheduleNameArgs),
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("timing").required(true).args(["cron", "every", "at"])))]
pub(crate) struct ScheduleCreateArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Cron expression: minute, hour, day, month, weekday, or with seconds in front, or @daily
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// Interval, such as 30s or 1h30m
    #[arg(long, value_name = "DURATION")]
    pub(crate) every: Option<String>,
    /// One instant, such as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) at: Option<Timestamp>,
    /// Time zone of the cron expression, such as Europe/Rome; UTC if left out
    #[arg(long = "tz", value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Type of the task
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) task_type: String,
    /// Payload of the task as JSON; @FILE reads a file, - standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Queue of the task
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Priority of the task, 0 to 9
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Retries of the task after its first attempt
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// While an earlier run has not ended: skip (default), bufferOne, allow or cancelOther
    #[arg(long, value_name = "POLICY", value_parser = overlap)]
    pub(crate) overlap: Option<Overlap>,
    /// Runs that were missed: latest (default) runs one of them, skip none, all each
    #[arg(long, value_name = "POLICY", value_parser = misfire)]
    pub(crate) misfire: Option<Misfire>,
    /// Spread the starts over this time
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) jitter: Option<Duration>,
    /// How late a missed run may still start; 1h if left out
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) catch_up: Option<Duration>,
    /// No run before this instant
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) start_at: Option<Timestamp>,
    /// No run after this instant
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) end_at: Option<Timestamp>,
    /// Note, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    /// Label of the schedule; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Only show the next runs; create nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleApplyArgs {
    /// One schedule or a list of them, in YAML or JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleListArgs {
    /// Only schedules in this state: active or paused
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only schedules with this label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Number of items
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page with the same filters
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleNameArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleNextArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Number of runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SchedulePauseArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Reason, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleBackfillArgs {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The first instant, such as 2026-01-01T00:00:00Z
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) from: Timestamp,
    /// The last instant
    #[arg(long, value_name = "INSTANT", value_parser = Timestamp::parse)]
    pub(crate) to: Timestamp,
    /// Only show the slots; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

fn overlap(text: &str) -> Result<Overlap, String> {
    word(text, &Overlap::ALL)
}

fn misfire(text: &str) -> Result<Misfire, String> {
    word(text, &Misfire::ALL)
}

/// One of a few words; `buffer-one` and `buffer_one` mean `bufferOne`.
fn word<T: Copy + ToString>(text: &str, words: &[T]) -> Result<T, String> {
    let wanted = text.replace(['-', '_'], "");
    let found = words.iter().find(|word| word.to_string().eq_ignore_ascii_case(&wanted));
    found.copied().ok_or_else(|| {
        let names: Vec<_> = words.iter().map(ToString::to_string).collect();
        format!("must be one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_people_write_them() {
        for text in ["bufferOne", "buffer-one", "buffer_one", "bufferone"] {
            assert_eq!(overlap(text), Ok(Overlap::BufferOne), "{text}");
        }
        assert_eq!(misfire("all"), Ok(Misfire::All));
        assert!(overlap("sometimes").unwrap_err().contains("cancelOther"));
    }
}
