//! The verdict on a run, as it is kept beside its files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::class::Class;
use super::figures::Figures;
use super::minima::Minimum;
use super::witness::Witness;
use crate::history::{Run, file};

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Nothing is wrong, and enough happened.
    Valid,
    /// Something is wrong.
    Violated,
    /// Not enough happened, or it cannot be read.
    Unknown,
}

impl Decision {
    /// With which code the program ends.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Violated => 1,
            Self::Unknown => 2,
        }
    }
}

/// The verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What is decided.
    pub verdict: Decision,
    /// Why nothing could be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Repeats the run.
    pub seed: Option<u64>,
    /// What was tested.
    pub version: Option<String>,
    /// How many violations there are of each class.
    pub violations: BTreeMap<Class, u64>,
    /// What had to happen at least.
    pub minima: Vec<Minimum>,
    /// Lines that killed writers left unfinished.
    pub half_lines: u64,
    /// How much happened.
    pub figures: Figures,
    /// The first violations.
    pub first: Vec<Witness>,
}

impl Verdict {
    pub(super) fn new(
        run: Run,
        half_lines: u64,
        minima: Vec<Minimum>,
        violations: BTreeMap<Class, u64>,
        first: Vec<Witness>,
        figures: Figures,
    ) -> Self {
        let verdict = if !violations.is_empty() {
            Decision::Violated
        } else if minima.iter().all(|minimum| minimum.met) {
            Decision::Valid
        } else {
            Decision::Unknown
        };
        let (seed, version) = (Some(run.seed), Some(run.version));
        let problem = None;
        Self { verdict, problem, seed, version, violations, minima, half_lines, figures, first }
    }

    /// Nothing can be decided.
    pub(super) fn unreadable(problem: String) -> Self {
        Self {
            verdict: Decision::Unknown,
            problem: Some(problem),
            seed: None,
            version: None,
            violations: BTreeMap::new(),
            minima: Vec::new(),
            half_lines: 0,
            figures: Figures::default(),
            first: Vec::new(),
        }
    }

    /// Keeps it in the folder of the run.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(file::VERDICT);
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
