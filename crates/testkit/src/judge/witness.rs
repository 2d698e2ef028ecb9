//! The lines of all files that belong to a violation, found by reading the files once more: to keep
//! them all the first time would need the memory of the whole run.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use duly_core::id::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::each_line;
use super::findings::Violation;
use crate::history::file;

/// Faults that are told of with a violation at the most.
const FAULTS: usize = 100;

/// A violation with all that is known about its tasks.
#[derive(Clone, Debug, Serialize)]
pub struct Witness {
    /// What is wrong.
    #[serde(flatten)]
    pub violation: Violation,
    /// What its class means.
    pub sentence: &'static str,
    /// All lines, in order of time.
    pub lines: Vec<Told>,
}

/// A line and where it stands.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// In which file.
    pub file: &'static str,
    /// When, on the monotonic clock.
    pub mono_ns: u64,
    /// The whole line.
    pub line: Value,
}

/// What tells whose line it is.
#[derive(Deserialize)]
struct Head<'a> {
    mono_ns: u64,
    task: Option<TaskId>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    op: Option<u64>,
}

/// Finds the lines of these violations.
pub(super) fn of(
    folder: &Path,
    ttl: u64,
    violations: &[Violation],
) -> anyhow::Result<Vec<Witness>> {
    let mut finder = Finder::new(violations);
    for name in [file::CLIENT, file::EFFECTS, file::SHOWN, file::WORKFLOWS] {
        each_line(&folder.join(name), |text| finder.take(name, text))?;
    }
    let mut faults = Vec::new();
    each_line(&folder.join(file::NEMESIS), |text| told(file::NEMESIS, text, &mut faults))?;
    for witness in &mut finder.witnesses {
        // What is shown comes long after, when everything was over.
        let is_end = |file| [file::SHOWN, file::WORKFLOWS].contains(&file);
        let times = witness.lines.iter().filter(|line| !is_end(line.file));
        let times = times.map(|line| line.mono_ns);
        let first = times.clone().min().unwrap_or(0).saturating_sub(2 * ttl);
        let last = times.max().unwrap_or(0);
        let near = faults.iter().filter(|line| (first..=last).contains(&line.mono_ns));
        witness.lines.extend(near.take(FAULTS).cloned());
        witness.lines.sort_by_key(|line| line.mono_ns);
    }
    Ok(finder.witnesses)
}

/// Knows which line belongs to which violations.
struct Finder {
    witnesses: Vec<Witness>,
    tasks: HashMap<TaskId, Vec<usize>>,
    keys: HashMap<String, Vec<usize>>,
    /// Calls whose first line was found; their answers may name neither task nor key.
    calls: HashMap<u64, HashSet<usize>>,
}

impl Finder {
    fn new(violations: &[Violation]) -> Self {
        let mut tasks: HashMap<_, Vec<_>> = HashMap::new();
        let mut keys: HashMap<_, Vec<_>> = HashMap::new();
        let mut witnesses = Vec::new();
        for (place, violation) in violations.iter().enumerate() {
            for task in &violation.tasks {
                tasks.entry(*task).or_default().push(place);
            }
            for key in &violation.keys {
                keys.entry(key.clone()).or_default().push(place);
            }
            let (violation, sentence) = (violation.clone(), violation.class.sentence());
            witnesses.push(Witness { violation, sentence, lines: Vec::new() });
        }
        Self { witnesses, tasks, keys, calls: HashMap::new() }
    }

    /// Keeps a line where it belongs; whether it is one.
    fn take(&mut self, name: &'static str, text: &[u8]) -> bool {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(text) else { return false };
        let mut places = HashSet::new();
        places.extend(head.task.and_then(|task| self.tasks.get(&task)).into_iter().flatten());
        places.extend(head.key.and_then(|key| self.keys.get(&*key)).into_iter().flatten());
        if let Some(op) = head.op {
            places.extend(self.calls.get(&op).into_iter().flatten());
            if !places.is_empty() {
                self.calls.insert(op, places.clone());
            }
        }
        if places.is_empty() {
            return true;
        }
        let Ok(line) = serde_json::from_slice::<Value>(text) else { return false };
        for place in places {
            let (mono_ns, line) = (head.mono_ns, line.clone());
            self.witnesses[place].lines.push(Told { file: name, mono_ns, line });
        }
        true
    }
}

fn told(file: &'static str, text: &[u8], lines: &mut Vec<Told>) -> bool {
    let Ok(line) = serde_json::from_slice::<Value>(text) else { return false };
    let Some(mono_ns) = line["mono_ns"].as_u64() else { return false };
    lines.push(Told { file, mono_ns, line });
    true
}
