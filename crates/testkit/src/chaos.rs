//! A run under faults: a real server behind a wire that breaks, or many of them over one database;
//! worker processes, clients that keep submitting, and a nemesis. Everything that is seen is written into one folder, which the
//! judge reads.

mod callee;
mod clients;
mod cluster;
mod crew;
mod doors;
mod nemesis;
mod notes;
mod show;
mod stage;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use self::clients::{Clients, Scene};
use self::cluster::Cluster;
use self::doors::Doors;
use self::nemesis::Nemesis;
use self::stage::Stage;
use crate::history::{FaultKind, Run, file};
use crate::journal::{mono_ns, real_ns};
use crate::report;
use crate::stalls::Watchman;

/// How long workers of one server may be silent.
pub const TTL: Duration = Duration::from_secs(1);
/// How long nodes, and workers of many nodes, may be silent.
pub const NODE_TTL: Duration = Duration::from_secs(2);

/// What tasks are kept on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// One `duly dev` on a file.
    File,
    /// Many `duly serve` on a PostgreSQL of their own.
    Postgres {
        /// How many.
        nodes: usize,
        /// Whether the database waits for the disk: only a crash of the machine could tell.
        is_durable: bool,
    },
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The binary under test; the worker's lies beside it.
    pub duly: PathBuf,
    /// Where to write what is seen; made anew.
    pub folder: PathBuf,
    /// One server or many.
    pub ground: Ground,
    /// Repeats a run: the same faults in the same order, as far as the processes play along.
    pub seed: u64,
    /// How long faults are made.
    pub duration: Duration,
    /// How many workflows clients submit in this time; what is left over they submit after it.
    /// The more, the fewer single tasks.
    pub workflows: u64,
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
    let random = StdRng::seed_from_u64(config.seed);
    match config.ground {
        Ground::File => {
            let stage = Arc::new(Stage::build(config).await?);
            let scene = Scene { doors: stage.doors()?, callee: None };
            let nemesis = Nemesis::new(&stage, random, &config.faults);
            perform(config, TTL, scene, nemesis.torment(config.duration)).await?;
            let stage = Arc::into_inner(stage).context("the stage is still in use")?;
            stage.clear().await
        }
        Ground::Postgres { nodes, is_durable } => {
            let cluster = Arc::new(Cluster::build(config, nodes, is_durable).await?);
            let scene = cluster.scene()?;
            let nemesis = cluster::nemesis::Nemesis::new(&cluster, random, &config.faults);
            perform(config, NODE_TTL, scene, nemesis.torment(config.duration)).await?;
            let cluster = Arc::into_inner(cluster).context("the cluster is still in use")?;
            cluster.clear().await
        }
    }
}

/// Lets clients submit while `torment` breaks things, waits for the end of everything, and writes
/// down what is shown then.
async fn perform(
    config: &Config,
    ttl: Duration,
    scene: Scene,
    torment: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let (folder, doors) = (&config.folder, scene.doors.clone());
    write_run(config, ttl, &doors).await?;
    // If the harness does not get to run, no process on this machine does.
    let _watchman = Watchman::start(&folder.join(file::NEMESIS), "server")?;
    let stop = CancellationToken::new();
    let clients = Clients::start(config, scene, stop.clone())?;
    let tormented = torment.await;
    stop.cancel();
    clients.ended().await?;
    // Also when the system did not recover: the judge wants to see what became of it.
    let shown = show::until_quiet(&doors, folder, config.healed_within).await?;
    tormented?;
    report::say(&format!("chaos: {shown} tasks are shown at the end"));
    Ok(())
}

async fn write_run(config: &Config, ttl: Duration, doors: &Doors) -> anyhow::Result<()> {
    let run = Run {
        seed: config.seed,
        ttl_ms: u64::try_from(ttl.as_millis())?,
        real_minus_mono_ns: i128::from(real_ns()) - i128::from(mono_ns()),
        version: doors.door(0).version().await?.version,
    };
    let text = serde_json::to_vec_pretty(&run)?;
    Ok(std::fs::write(config.folder.join(file::RUN), text)?)
}
