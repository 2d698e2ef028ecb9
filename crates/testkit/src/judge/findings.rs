//! What was found: every violation is counted, and the first ones are kept as witnesses.

use std::collections::BTreeMap;

use duly_core::id::TaskId;
use serde::Serialize;

use super::class::Class;

/// How many violations are told in full.
const WITNESSES: usize = 10;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Of which kind.
    pub class: Class,
    /// What exactly.
    pub detail: String,
    /// When it showed, on the monotonic clock.
    pub mono_ns: u64,
    /// The tasks that it is about.
    pub tasks: Vec<TaskId>,
    /// The keys that it is about.
    pub keys: Vec<String>,
}

/// All violations of a run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    counts: BTreeMap<Class, u64>,
    first: Vec<Violation>,
}

impl Findings {
    /// Adds one.
    pub fn add(&mut self, violation: Violation) {
        *self.counts.entry(violation.class).or_default() += 1;
        // Ties are broken by what is found, so that a run is judged alike every time.
        let rank = |it: &Violation| (it.mono_ns, it.class, it.tasks.first().copied());
        let place = self.first.partition_point(|other| rank(other) <= rank(&violation));
        self.first.insert(place, violation);
        self.first.truncate(WITNESSES);
    }

    /// How many there are of each class.
    pub fn counts(&self) -> &BTreeMap<Class, u64> {
        &self.counts
    }

    /// The first ones, in order of time.
    pub fn first(&self) -> &[Violation] {
        &self.first
    }

    /// Which classes occur.
    pub fn classes(&self) -> Vec<Class> {
        self.counts.keys().copied().collect()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
