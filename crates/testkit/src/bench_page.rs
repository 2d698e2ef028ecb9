//! docs/benchmarks.md: tables and plots from the files that `make bench` and `make bench-peers`
//! have written.

mod bars;
mod ours;
mod peers;

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::page::{filled, grouped};

/// Reads the results below `results` and writes the page and the plots of `docs`. A result that
/// is not there leaves its part of the page as it is.
pub fn write(results: &Path, docs: &Path) -> anyhow::Result<()> {
    let path = docs.join("benchmarks.md");
    let mut page = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let images = docs.join("images");
    let mut bulk = peers::BulkOverHttp::default();
    for (store, bulk) in [("sqlite", &mut bulk.sqlite), ("postgres", &mut bulk.postgres)] {
        if let Some(run) = read::<ours::Run>(&results.join(format!("{store}.json")))? {
            page = filled(&page, store, &ours::tables(&run))?;
            ours::draw(&run, &images, store)?;
            *bulk = run.bulk_over_http();
        }
    }
    if let Some(run) = read::<ours::Run>(&results.join("queries.json"))? {
        page = filled(&page, "queries", &ours::questions(&run))?;
    }
    if let Some(run) = read::<ours::Run>(&results.join("held.json"))? {
        page = filled(&page, "held", &ours::tables(&run))?;
        ours::draw_held(&run, &images)?;
    }
    if let Some(run) = read::<peers::Run>(&results.join("peers.json"))? {
        let comparison = peers::Comparison::new(&run, &bulk);
        page = filled(&page, "peers", &comparison.tables())?;
        comparison.draw(&images)?;
    }
    Ok(std::fs::write(path, page)?)
}

/// Nothing if there is no such file.
fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    match std::fs::read(path) {
        Ok(text) => {
            let run = serde_json::from_slice(&text);
            run.with_context(|| format!("{} is not a result", path.display())).map(Some)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Where it was measured.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Machine {
    cpus: usize,
    cpu: Option<String>,
    memory: Option<String>,
    os: Option<String>,
    kernel: Option<String>,
    file_system: Option<String>,
}

impl Machine {
    fn text(&self) -> String {
        let kib = self.memory.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
        let memory = kib.map(|kib: f64| format!("{:.0} GiB", kib / 1024.0 / 1024.0));
        let kernel = self.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
        let file_system = self.file_system.as_ref().map(|name| format!("{name} disk"));
        let cpus = Some(format!("{} × {}", self.cpus, self.cpu.as_deref().unwrap_or("CPU")));
        let parts = [cpus, memory, self.os.clone(), kernel, file_system];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A figure as people read it.
fn number(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded")]
        return grouped(value.round().max(0.0) as u64);
    }
    if value >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}
