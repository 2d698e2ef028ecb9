//! The limit: the bare store with the same rows and nothing else, which the other figures are held
//! against.

use std::path::Path;

use duly_store::limit::{HandOff, Limit};
use duly_store::postgres::limit as postgres;
use duly_store::sqlite::limit::{self as sqlite, Layout};

use super::figures::Figure;
use super::place::Place;
use super::run::Run;
use super::{BATCH, ROUNDS};

/// Tasks that are handed off at once; a worker has room for twice as many.
pub(super) const HAND_OFF: usize = BATCH / 2;
pub(super) const STEPS: usize = ROUNDS;

/// The best of the bare store.
pub(super) struct Limits {
    pub(super) lives: Limit,
    pub(super) hand_off: HandOff,
}

/// The best of each kind so far.
#[derive(Default)]
struct Best {
    lives: Option<Limit>,
    /// Of a layout that is not ours.
    rival: Option<Limit>,
    hand_off: Option<HandOff>,
}

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<Limits> {
    let mut best = Best::default();
    for round in 1..=ROUNDS {
        run.step(&format!("limit: the bare store, {} tasks, {round} of {ROUNDS}", run.tasks));
        let (whole, handed) = (run.place("limit").await?, run.place("limit-handed").await?);
        match (&whole, &handed) {
            (Place::Folder(whole), Place::Folder(handed)) => {
                best.files(whole, handed, run.tasks)?
            }
            (Place::Database(whole), Place::Database(handed)) => {
                keep(
                    &mut best.lives,
                    postgres::run(whole.url(), run.tasks, BATCH).await?,
                    Limit::cycle,
                );
                let limit = postgres::hand_off(handed.url(), run.tasks, HAND_OFF).await?;
                keep(&mut best.hand_off, limit, |it| it.cycle);
            }
            _ => unreachable!("one run is on one kind of store"),
        }
        whole.remove().await?;
        handed.remove().await?;
    }
    let Best { lives: Some(lives), rival, hand_off: Some(hand_off) } = best else {
        unreachable!("everything was run")
    };
    tell(run, ("due table", &lives));
    if let Some(rival) = rival {
        tell(run, ("partial index", &rival));
    }
    run.found(Figure::rate("limit, hand-off: whole cycle", hand_off.tasks, hand_off.cycle));
    run.found(Figure::bytes("limit, hand-off: log", hand_off.log_bytes_per_task as f64));
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

/// Keeps the faster one.
fn keep<T, C: PartialOrd>(best: &mut Option<T>, other: T, cost: impl Fn(&T) -> C) {
    if best.as_ref().is_none_or(|best| cost(&other) < cost(best)) {
        *best = Some(other);
    }
}

fn tell(run: &mut Run, (name, limit): (&str, &Limit)) {
    let rate =
        |part: &str, time| Figure::rate(&format!("limit, {name}: {part}"), limit.tasks, time);
    run.found(rate("submit", limit.submit));
    run.found(rate("claim and finish", limit.drain()));
    run.found(rate("whole cycle", limit.cycle()));
    run.found(Figure::bytes(&format!("limit, {name}: log"), limit.log_bytes_per_task as f64));
}
