//! The processes that wrote effects, by the name of their worker and their number.

use std::collections::HashMap;

/// One process of a worker.
#[derive(Debug)]
pub(super) struct Proc {
    /// What the worker calls itself, in all its processes.
    pub(super) worker: String,
    pid: u32,
    /// Its first and its last line.
    first: u64,
    last: u64,
    /// Its last line, if another process took its name later: it died whether or not anybody says.
    pub(super) gone: Option<u64>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Procs {
    list: Vec<Proc>,
    places: HashMap<(String, u32), usize>,
}

impl Procs {
    /// The process that wrote a line.
    pub(super) fn note(&mut self, worker: String, pid: u32, at: u64) -> usize {
        let place = *self.places.entry((worker, pid)).or_insert_with_key(|(worker, pid)| {
            let (worker, pid) = (worker.clone(), *pid);
            self.list.push(Proc { worker, pid, first: at, last: at, gone: None });
            self.list.len() - 1
        });
        let proc = &mut self.list[place];
        proc.first = proc.first.min(at);
        proc.last = proc.last.max(at);
        place
    }

    /// Nothing more comes: tells who is gone.
    pub(super) fn seal(&mut self) {
        let mut newest: HashMap<&str, u64> = HashMap::new();
        for proc in &self.list {
            let first = newest.entry(&proc.worker).or_default();
            *first = proc.first.max(*first);
        }
        let is_gone = |proc: &Proc| newest[proc.worker.as_str()] > proc.last;
        let gone: Vec<bool> = self.list.iter().map(is_gone).collect();
        for (proc, gone) in self.list.iter_mut().zip(gone) {
            proc.gone = gone.then_some(proc.last);
        }
    }

    /// Whether a process was last heard of in this time and died.
    pub(super) fn any_gone(&self, from: u64, to: u64) -> bool {
        let mut gone = self.list.iter().filter_map(|proc| proc.gone);
        gone.any(|gone| (from..=to).contains(&gone))
    }

    pub(super) fn get(&self, place: usize) -> &Proc {
        &self.list[place]
    }
}

impl std::fmt::Display for Proc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.worker, self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_once_another_has_its_name() {
        let mut procs = Procs::default();
        let old = procs.note("w1".to_owned(), 1, 10);
        procs.note("w1".to_owned(), 1, 20);
        let new = procs.note("w1".to_owned(), 2, 30);
        let other = procs.note("w2".to_owned(), 3, 5);
        procs.seal();
        let gone = [old, new, other].map(|place| procs.get(place).gone);
        assert_eq!(gone, [Some(20), None, None]);
    }
}
