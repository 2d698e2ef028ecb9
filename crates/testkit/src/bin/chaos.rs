//! Makes a run under faults and writes down everything that is seen; `judge` says what it was
//! worth. See docs/chaos.md.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use duly_testkit::chaos::{Config, Ground, run};
use duly_testkit::history::FaultKind;
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};

const USAGE: &str = "usage: chaos --duly BINARY --folder FOLDER --seconds N [--seed N] \
                     [--nodes N] [--workflows N] [--faults kill,pause,…] [--bug NAME]";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = parse(std::env::args().skip(1))?;
    run(&config).await?;
    std::io::stdout().write_all(format!("{}\n", config.folder.display()).as_bytes())?;
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Config> {
    let (mut duly, mut folder, mut seconds) = (None, None, None);
    let (mut seed, mut faults, mut bug) = (StdRng::from_os_rng().next_u64(), Vec::new(), None);
    let (mut ground, mut workflows) = (Ground::File, None);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{flag} needs a value; {USAGE}"))?;
        match flag.as_str() {
            "--duly" => duly = Some(PathBuf::from(value)),
            "--folder" => folder = Some(PathBuf::from(value)),
            "--seconds" => seconds = Some(value.parse().context("--seconds needs a number")?),
            "--seed" => seed = value.parse().context("--seed needs a number")?,
            "--faults" => faults = value.split(',').map(fault).collect::<anyhow::Result<_>>()?,
            "--nodes" => ground = on(value.parse().context("--nodes needs a number")?),
            "--workflows" => {
                workflows = Some(value.parse().context("--workflows needs a number")?);
            }
            "--bug" => bug = Some(value),
            _ => bail!("{flag} is unknown; {USAGE}"),
        }
    }
    let seconds = seconds.context(USAGE)?;
    Ok(Config {
        duly: duly.context(USAGE)?,
        folder: folder.context(USAGE)?,
        duration: Duration::from_secs(seconds),
        // One a second leaves most of the run to single tasks.
        workflows: workflows.unwrap_or(seconds),
        ground,
        seed,
        faults,
        bug,
        healed_within: Duration::from_secs(90),
    })
}

/// One server needs nothing else; many share a database.
fn on(nodes: usize) -> Ground {
    if nodes > 1 { Ground::Postgres { nodes, is_durable: true } } else { Ground::File }
}

fn fault(name: &str) -> anyhow::Result<FaultKind> {
    let text = serde_json::Value::String(name.to_owned());
    serde_json::from_value(text).with_context(|| format!("there is no fault `{name}`"))
}
