//! The limit: the bare store with the same rows and nothing else, which the other figures are held
//! against.

use duly_store::sqlite::limit::{self, HandOff, Layout, Limit};

use super::figures::Figure;
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

pub(super) fn measure(run: &mut Run) -> anyhow::Result<Limits> {
    let mut best: [Option<Limit>; 2] = [None, None];
    let mut hand_off: Option<HandOff> = None;
    for round in 1..=ROUNDS {
        run.step(&format!("limit: bare SQLite, {} tasks, {round} of {ROUNDS}", run.tasks));
        let folder = run.folder("limit");
        for (best, layout) in best.iter_mut().zip([Layout::DueTable, Layout::PartialIndex]) {
            let limit = limit::run(&folder.join("limit.db"), layout, run.tasks, BATCH)?;
            std::fs::remove_dir_all(&folder)?;
            if best.is_none_or(|best| limit.cycle() < best.cycle()) {
                *best = Some(limit);
            }
        }
        let limit = limit::hand_off(&folder.join("limit.db"), run.tasks, HAND_OFF)?;
        std::fs::remove_dir_all(&folder)?;
        if hand_off.is_none_or(|best| limit.cycle < best.cycle) {
            hand_off = Some(limit);
        }
    }
    let ([Some(lives), Some(rival)], Some(hand_off)) = (best, hand_off) else {
        unreachable!("everything was run")
    };
    tell(run, &lives, &rival, &hand_off);
    Ok(Limits { lives, hand_off })
}

fn tell(run: &mut Run, lives: &Limit, rival: &Limit, hand_off: &HandOff) {
    for (name, limit) in [("due table", lives), ("partial index", rival)] {
        let rate =
            |part: &str, time| Figure::rate(&format!("limit, {name}: {part}"), limit.tasks, time);
        run.found(rate("submit", limit.submit));
        run.found(rate("claim and finish", limit.drain()));
        run.found(rate("whole cycle", limit.cycle()));
        run.found(Figure::bytes(&format!("limit, {name}: log"), limit.log_bytes_per_task as f64));
    }
    run.found(Figure::rate("limit, hand-off: whole cycle", hand_off.tasks, hand_off.cycle));
    run.found(Figure::bytes("limit, hand-off: log", hand_off.log_bytes_per_task as f64));
}
