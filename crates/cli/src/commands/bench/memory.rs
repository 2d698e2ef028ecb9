//! Memory of processes, as the kernel tells it.

use anyhow::Context as _;

use super::figures::{Figure, Target};
use super::rest::Server;
use super::run::Run;

pub(super) const STEPS: usize = 1;

/// A server that has just started and has nothing to do.
pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    run.step("memory: an idle server");
    let place = run.place("memory").await?;
    let server = Server::start(&place, true).await?;
    let process = server.id().context("the server has ended")?;
    let resident = field(&process.to_string(), "VmRSS:")?;
    server.stop().await?;
    place.remove().await?;
    let figure = Figure::new("memory: idle server", resident, "MB");
    run.found(figure.must(Target::AtMost(60.0)).then(Target::AtMost(30.0)));
    Ok(())
}

/// What this process has taken and filled, in MB. Pages of files do not count: the kernel takes
/// them back when it needs them.
pub(super) fn anonymous() -> anyhow::Result<f64> {
    field("self", "RssAnon:")
}

/// A figure of `/proc`, in MB.
fn field(process: &str, name: &str) -> anyhow::Result<f64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} has no {name}"))? * 1024.0 / 1e6)
}
