//! What must have happened at least for a run to prove anything.

use anyhow::bail;
use serde::Serialize;

use super::figures::Figures;

/// What can be asked for, by the name of its option without `--min-`.
const KNOWN: [(&str, Figure); 15] = [
    ("acked", |figures| figures.acked as f64),
    ("workflows", |figures| figures.workflows as f64),
    ("delayed-starts", |figures| figures.delayed_starts as f64),
    ("kills", |figures| figures.kills as f64),
    ("pauses", |figures| figures.pauses as f64),
    ("refusals", |figures| figures.refusals as f64),
    ("resets", |figures| figures.resets as f64),
    ("cuts", |figures| figures.cuts as f64),
    ("database-restarts", |figures| figures.database_restarts as f64),
    ("terminations", |figures| figures.terminations as f64),
    ("leader-kills", |figures| figures.leader_kills as f64),
    ("disk-full", |figures| figures.disk_full as f64),
    ("losses", |figures| figures.lease_losses as f64),
    ("unknown", |figures| figures.unknown_answers as f64),
    ("in-flight-percent", |figures| figures.in_flight_percent),
];

type Figure = fn(&Figures) -> f64;

/// What a run is asked for.
#[derive(Clone, Debug, Default)]
pub struct Minima(Vec<(&'static str, Figure, f64)>);

/// One of them and what there was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Minimum {
    /// Which figure.
    pub name: &'static str,
    /// What it must be at least.
    pub wanted: f64,
    /// What it is.
    pub got: f64,
    /// Whether that is enough.
    pub met: bool,
}

impl Minima {
    /// Asks for one more, by its name.
    pub fn ask(&mut self, name: &str, wanted: f64) -> anyhow::Result<()> {
        let Some((name, figure)) = KNOWN.into_iter().find(|(known, _)| *known == name) else {
            let names: Vec<_> = KNOWN.iter().map(|(name, _)| *name).collect();
            bail!("no minimum is called {name:?}; there are {}", names.join(", "));
        };
        self.0.push((name, figure, wanted));
        Ok(())
    }

    /// Compares.
    pub(super) fn compare(&self, figures: &Figures) -> Vec<Minimum> {
        let compare = |&(name, figure, wanted): &(&'static str, Figure, f64)| {
            let got = figure(figures);
            Minimum { name, wanted, got, met: got >= wanted }
        };
        self.0.iter().map(compare).collect()
    }
}
