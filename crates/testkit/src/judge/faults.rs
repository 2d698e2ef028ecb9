//! What was broken when, and whether it can explain what a worker did or met.

use std::collections::HashMap;

use serde::Serialize;

use crate::history::{Edge, Fault, FaultKind};

/// The processes under test, as faults name them: one server, or many nodes and their database.
const SERVER: &str = "server";
const NODE: &str = "node-";
const DATABASE: &str = "database";
/// What lies between workers and server, as faults name it.
const LINK: &str = "link";

/// A fault from its beginning to its end, on the monotonic clock.
#[derive(Clone, Debug, Serialize)]
pub struct Spell {
    /// What was done.
    pub kind: FaultKind,
    /// To whom.
    pub target: String,
    /// When it began.
    pub begin: u64,
    /// When it was over; the end of time if that is unknown.
    pub end: u64,
    /// What was under way when it began.
    pub in_flight: u64,
}

impl Spell {
    /// Whether it can make a worker lose its leases.
    pub(super) fn harms(&self, worker: &str) -> bool {
        let reaches = self.target == worker || self.target == LINK;
        let is_servers = self.is_servers() || self.kind == FaultKind::DiskFull;
        is_servers || (reaches && self.kind != FaultKind::Abort)
    }

    /// Whether it can keep a living worker from hearing and being heard in time.
    pub(super) fn silences(&self, worker: &str) -> bool {
        use FaultKind::{Cut, Delay, Hold, Pause, Stall};
        let reaches = [worker, LINK].contains(&self.target.as_str()) || self.is_servers();
        reaches && matches!(self.kind, Pause | Hold | Delay | Cut | Stall)
    }

    /// Whether it ends a process and everything that runs in it.
    fn ends_process(&self) -> bool {
        matches!(self.kind, FaultKind::Kill | FaultKind::Restart)
    }

    /// Whether it is done to what everybody needs: any worker may have used any node.
    pub(super) fn is_servers(&self) -> bool {
        self.target == SERVER || self.is_database() || self.target.starts_with(NODE)
    }

    pub(super) fn is_database(&self) -> bool {
        self.target == DATABASE
    }

    pub(super) fn ends_server(&self) -> bool {
        self.is_servers() && self.ends_process()
    }
}

/// All faults of a run.
#[derive(Debug, Default)]
pub(super) struct Faults {
    spells: Vec<Spell>,
    /// Begun and not over, by kind and target.
    open: HashMap<(FaultKind, String), Vec<usize>>,
    /// The latest end among a spell and all before it: where a search backwards may stop.
    latest_ends: Vec<u64>,
    /// Those that end a process, by its name, in order of time.
    deaths: HashMap<String, Vec<usize>>,
}

impl Faults {
    pub(super) fn add(&mut self, at: u64, fault: Fault) {
        let Fault { fault: kind, target, phase, in_flight } = fault;
        let open = self.open.entry((kind, target.clone())).or_default();
        match phase {
            Edge::Begin => {
                open.push(self.spells.len());
                self.spells.push(Spell { kind, target, begin: at, end: u64::MAX, in_flight });
            }
            Edge::End => match open.pop() {
                Some(place) => self.spells[place].end = at,
                None => self.spells.push(Spell { kind, target, begin: at, end: at, in_flight }),
            },
        }
    }

    /// Nothing more comes: makes it ready for questions.
    pub(super) fn seal(&mut self) {
        self.spells.sort_by_key(|spell| spell.begin);
        let mut latest = 0;
        let ends = self.spells.iter().map(|spell| {
            latest = latest.max(spell.end);
            latest
        });
        self.latest_ends = ends.collect();
        for (place, spell) in self.spells.iter().enumerate() {
            if spell.ends_process() {
                self.deaths.entry(spell.target.clone()).or_default().push(place);
            }
        }
    }

    pub(super) fn all(&self) -> &[Spell] {
        &self.spells
    }

    /// Whether such a fault was there at some moment from `from` to `to`.
    pub(super) fn any(&self, from: u64, to: u64, is_meant: impl Fn(&Spell) -> bool) -> bool {
        let begun = self.spells.partition_point(|spell| spell.begin <= to);
        let near = (0..begun).rev().take_while(|&place| self.latest_ends[place] >= from);
        near.map(|place| &self.spells[place]).any(|spell| spell.end >= from && is_meant(spell))
    }

    /// Until when a process that was alive at `at` certainly lived, if it was ended on purpose.
    ///
    /// It may write for a moment after the line that announces its end, hence the question for
    /// the end of that fault.
    pub(super) fn death(&self, worker: &str, at: u64) -> Option<u64> {
        let deaths = self.deaths.get(worker)?;
        let next = deaths.iter().map(|&place| &self.spells[place]).find(|spell| spell.end >= at)?;
        Some(next.begin.max(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spells: &[(FaultKind, &str, u64, u64)]) -> Faults {
        let mut faults = Faults::default();
        for &(fault, target, begin, end) in spells {
            for (at, phase) in [(begin, Edge::Begin), (end, Edge::End)] {
                faults.add(at, Fault { fault, target: target.to_owned(), phase, in_flight: 0 });
            }
        }
        faults.seal();
        faults
    }

    #[test]
    fn a_long_fault_is_found_behind_short_ones() {
        let faults = faults(&[
            (FaultKind::Pause, "w1", 10, 90),
            (FaultKind::Pause, "w2", 20, 30),
            (FaultKind::Kill, "w3", 40, 40),
        ]);
        assert!(faults.any(80, 85, |spell| spell.silences("w1")));
        assert!(!faults.any(91, 95, |spell| spell.silences("w1")));
        assert!(!faults.any(31, 95, |spell| spell.silences("w2")));
        assert!(!faults.any(0, 9, |spell| spell.harms("w1")));
        assert_eq!((faults.death("w3", 35), faults.death("w3", 41)), (Some(40), None));
    }

    #[test]
    fn a_fault_without_an_end_lasts() {
        let mut faults = Faults::default();
        let (fault, target, phase) = (FaultKind::Hold, "link".to_owned(), Edge::Begin);
        faults.add(5, Fault { fault, target, phase, in_flight: 1 });
        faults.seal();
        assert!(faults.any(1_000, 1_001, |spell| spell.silences("anybody")));
    }
}
