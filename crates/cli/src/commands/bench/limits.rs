//! The limit: the bare store with the same rows and nothing else, with which other figures are
//! compared.

use std::path::Path;

use duly_store::limit::{HandOff, Limit};
use duly_store::postgres::limit as postgres;
use duly_store::sqlite::limit::{self as sqlite, Layout};

use super::figures::Figure;
use super::run::Run;
use super::store_site::StoreSite;
use super::{BATCH, ROUNDS};

/// Tasks that are handed off at once; a worker has free slots for twice as many.
pub(super) const HAND_OFF: usize = BATCH / 2;
pub(super) const STEPS: usize = ROUNDS;

/// The best results of the bare store.
pub(super) struct Limits {
    pub(super) lives: Limit,
    pub(super) hand_off: HandOff,
}

/// The best results so far.
#[derive(Default)]
struct Best {
    lives: Option<Limit>,
    /// Of the alternative layout.
    rival: Option<Limit>,
    hand_off: Option<HandOff>,
}

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<Limits> {
    let mut best = Best::default();
    for round in 1..=ROUNDS {
        run.step(&format!("limit: the bare store, {} tasks, {round} of {ROUNDS}", run.tasks));
        let (whole, handed) = (run.new_site("limit").await?, run.new_site("limit-handed").await?);
        match (&whole, &handed) {
            (StoreSite::Folder(whole), StoreSite::Folder(handed)) => {
                best.files(whole, handed, run.tasks)?
            }
            (StoreSite::Database(whole), StoreSite::Database(handed)) => {
                keep(
                    &mut best.lives,
                    postgres::run(whole.url(), run.tasks, BATCH).await?,
                    Limit::cycle,
                );
                let limit = postgres::hand_off(handed.url(), run.tasks, HAND_OFF).await?;
                keep(&mut best.hand_off, limit, |it| it.cycle);
            }
            _ => unreachable!("a run uses one kind of store"),
        }
        whole.remove().await?;
        handed.remove().await?;
    }
    let Best { lives: Some(lives), rival, hand_off: Some(hand_off) } = best else {
        unreachable!("every limit was measured")
    };
    add_limit(run, ("due table", &lives));
    if let Some(rival) = rival {
        add_limit(run, ("partial index", &rival));
    }
    run.add(Figure::rate("limit, hand-off: whole cycle", hand_off.tasks, hand_off.cycle));
    run.add(Figure::bytes("limit, hand-off: log", hand_off.log_bytes_per_task as f64));
    Ok(Limits { lives, hand_off })
}

impl Best {
    fn files(&mut self, whole: &Path, handed: &Path, tasks: usize) -> anyhow::Result<()> {
        let layouts =
            [(&mut self.lives, Layout::DueTable), (&mut self.rival, Layout::PartialIndex)];
        for (best, layout) in layouts {
            let limit = sqlite::run(&whole.join(format!("{layout:?}.db")), layout, tasks, BATCH)?;
            keep(best, limit, Limit::cycle);
        }
        let limit = sqlite::hand_off(&handed.join("limit.db"), tasks, HAND_OFF)?;
        keep(&mut self.hand_off, limit, |it| it.cycle);
        Ok(())
    }
}

/// Keeps the faster result.
fn keep<T, C: PartialOrd>(best: &mut Option<T>, other: T, cost: impl Fn(&T) -> C) {
    if best.as_ref().is_none_or(|best| cost(&other) < cost(best)) {
        *best = Some(other);
    }
}

fn add_limit(run: &mut Run, (name, limit): (&str, &Limit)) {
    let rate =
        |part: &str, time| Figure::rate(&format!("limit, {name}: {part}"), limit.tasks, time);
    run.add(rate("submit", limit.submit));
    run.add(rate("claim and finish", limit.drain()));
    run.add(rate("whole cycle", limit.cycle()));
    run.add(Figure::bytes(&format!("limit, {name}: log"), limit.log_bytes_per_task as f64));
}
