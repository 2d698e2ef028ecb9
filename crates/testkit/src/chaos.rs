//! A run under faults: a real server behind a wire that breaks, worker processes, clients that
//! keep submitting, and a nemesis. Everything that is seen is written into one folder, which the
//! judge reads.

mod clients;
mod nemesis;
mod show;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use self::clients::Clients;
use self::nemesis::Nemesis;
use self::stage::Stage;
use crate::history::{FaultKind, Run, file};
use crate::journal::{mono_ns, real_ns};
use crate::report;
use crate::stalls::Watchman;

/// How long workers may be silent.
pub const TTL: Duration = Duration::from_secs(1);
/// What to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The binary under test; the worker's lies beside it.
    pub duly: PathBuf,
    /// Where to write what is seen; made anew.
    pub folder: PathBuf,
    /// Repeats a run: the same faults in the same order, as far as the processes play along.
    pub seed: u64,
    /// How long faults are made.
    pub duration: Duration,
    /// Which ones; all of them when empty.
    pub faults: Vec<FaultKind>,
    /// A bug to switch on.
    pub bug: Option<String>,
    /// After the last fault everything has to end within this time.
    pub healed_within: Duration,
}

/// Makes the run. An error means that the harness could not go on, or that the system did not
/// recover in time; whether what happened was right is the judge's business.
pub async fn run(config: &Config) -> anyhow::Result<()> {
    let folder = &config.folder;
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    report::say(&format!("chaos: DULY_SEED={}, {} s", config.seed, config.duration.as_secs()));
    let stage = Arc::new(Stage::build(config).await?);
    write_run(config, &stage).await?;
    // A harness that does not get to run means a machine on which nobody does.
    let _watchman = Watchman::start(&folder.join(file::NEMESIS), "server")?;
    let stop = CancellationToken::new();
    let clients = Clients::start(&stage, config.seed, stop.clone());
    let random = StdRng::seed_from_u64(config.seed);
    let tormented = Nemesis::new(&stage, random, &config.faults).torment(config.duration).await;
    stop.cancel();
    clients.ended().await?;
    // Also when the system did not recover: the judge wants to see what became of it.
    let shown = show::until_quiet(&stage, config.healed_within).await?;
    tormented?;
    report::say(&format!("chaos: {shown} tasks are shown at the end"));
    let stage = Arc::into_inner(stage).context("somebody is still on the stage")?;
    stage.clear().await
}

async fn write_run(config: &Config, stage: &Stage) -> anyhow::Result<()> {
    let run = Run {
        seed: config.seed,
        ttl_ms: u64::try_from(TTL.as_millis())?,
        real_minus_mono_ns: i128::from(real_ns()) - i128::from(mono_ns()),
        version: stage.client().version().await?.version,
    };
    let text = serde_json::to_vec_pretty(&run)?;
    Ok(std::fs::write(config.folder.join(file::RUN), text)?)
}
