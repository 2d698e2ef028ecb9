//! Sample types that look like real work, for trials and demonstrations: they take time, report
//! progress, log their steps and return a summary, but change nothing.

mod about;

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::about::{CLEANUP_TEMP_FILES, DAILY_REPORT, DATA_BACKUP};
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::registry::Registry;

/// A type that does nothing, in steps; its payload is `null` or `{"speed": 10}`.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    seconds: u32,
    steps: &'static [&'static str],
    summary: fn(&mut Figures) -> Value,
}

/// Adds the samples: `daily-report`, `cleanup-temp-files` and `data-backup`.
#[must_use]
pub fn with_samples(registry: Registry) -> Registry {
    registry
        .with("daily-report", Sample::DAILY_REPORT)
        .with("cleanup-temp-files", Sample::CLEANUP_TEMP_FILES)
        .with("data-backup", Sample::DATA_BACKUP)
}

impl Sample {
    /// Takes 5 s.
    pub const DAILY_REPORT: Self = Self {
        seconds: 5,
        steps: &["read the orders", "join the customers", "sum up by region", "write the report"],
        summary: |figures| {
            json!({
                "report": "daily",
                "rows": figures.between(800, 4_000),
                "regions": figures.between(3, 12),
                "revenueCents": figures.between(1_000_000, 9_000_000),
                "sample": true,
            })
        },
    };
    /// Takes 1 s.
    pub const CLEANUP_TEMP_FILES: Self = Self {
        seconds: 1,
        steps: &["list the files", "pick those older than a week", "remove them"],
        summary: |figures| {
            let found = figures.between(100, 900);
            let removed = figures.between(10, found);
            json!({
                "filesFound": found,
                "filesRemoved": removed,
                "bytesFreed": removed * figures.between(2_000, 60_000),
                "sample": true,
            })
        },
    };
    /// Takes 10 s.
    pub const DATA_BACKUP: Self = Self {
        seconds: 10,
        steps: &[
            "take a snapshot",
            "copy the tables",
            "compress the copy",
            "upload the archive",
            "compare the checksums",
        ],
        summary: |figures| {
            let tables = figures.between(20, 60);
            let bytes = tables * figures.between(1_000_000, 9_000_000);
            json!({
                "tables": tables,
                "bytes": bytes,
                "archiveBytes": bytes / figures.between(3, 7),
                "checksum": format!("{:08x}", figures.between(0, 0xffff_ffff)),
                "sample": true,
            })
        },
    };

    /// How long each step takes.
    fn pause(&self, payload: Option<Payload>) -> Result<Duration, HandlerError> {
        let speed = payload.unwrap_or_default().speed;
        if !SPEEDS.contains(&speed) {
            let rule = format!("speed must lie between {} and {}", SPEEDS.start(), SPEEDS.end());
            return Err(HandlerError::invalid_payload(rule));
        }
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let whole = Duration::from_secs(self.seconds.into());
        Ok(whole.div_f64(speed) / steps)
    }
}

const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1e6;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Payload {
    /// A factor: 10 is ten times as fast.
    speed: f64,
}

impl Default for Payload {
    fn default() -> Self {
        Self { speed: 1.0 }
    }
}

#[async_trait]
impl Handler for Sample {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let pause = self.pause(context.payload()?)?;
        let count = self.steps.len();
        let total = u64::try_from(count).ok();
        for (done, step) in (0_u64..).zip(self.steps) {
            context.progress(done, total, Some(step));
            context.log(format_args!("step {} of {count}: {step}", done + 1));
            tokio::time::sleep(pause).await;
        }
        context.progress(total.unwrap_or_default(), total, None);
        context.log("done; it was a sample, so nothing has changed");
        let mut summary = (self.summary)(&mut Figures::of(&context));
        summary["steps"] = count.into();
        Output::json(&summary)
    }
}

/// Numbers that look like those of real work. They are derived from the task's id, so that every
/// run of a task returns the same.
struct Figures(u64);

impl Figures {
    fn of(context: &Context) -> Self {
        // FNV-1a: short, and the same in every version of the program.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(context.task().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next number from this range, both ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        // The low bits of such a sequence have a short period.
        least + (self.0 >> 32) % (most - least + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_lie_in_their_range_and_differ() {
        let mut figures = Figures(7);
        let drawn: Vec<u64> = (0..1_000).map(|_| figures.between(3, 12)).collect();
        assert!((3..=12).all(|number| drawn.contains(&number)), "{drawn:?}");
        assert!(drawn.iter().all(|number| (3..=12).contains(number)), "{drawn:?}");
        assert_eq!(Figures(7).between(5, 5), 5);
    }
}
