//! Memory of processes, as the kernel reports it.

use anyhow::Context as _;

use super::figures::{Figure, Target};
use super::rest::Server;
use super::run::Run;

pub(super) const STEPS: usize = 1;

/// Measures an idle server after its start.
pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    run.step("memory: an idle server");
    let site = run.new_site("memory").await?;
    let server = Server::start(&site, true).await?;
    let process = server.id().context("the server has ended")?;
    let resident = resident(process)?;
    server.stop().await?;
    site.remove().await?;
    let figure = Figure::new("memory: idle server", resident, "MB");
    run.add(figure.must(Target::AtMost(60.0)).stretch(Target::AtMost(30.0)));
    Ok(())
}

/// The memory of a process in MB.
pub(super) fn resident(process: u32) -> anyhow::Result<f64> {
    field(&process.to_string(), "VmRSS:")
}

/// The anonymous memory of this process in MB. Pages of files do not count: the kernel can reclaim
/// them.
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
