//! The outcomes of an exchange, sorted by what it takes to commit them.

use duly_core::lease::{Finish, Outcome};
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use crate::postgres::row;
use crate::postgres::task_state::state::each;

/// The outcomes of an exchange: those that need a look at their row, and plain successes.
pub(super) struct Items<'a> {
    pub(super) slow: Vec<&'a Finish>,
    named_twice: HashSet<Uuid>,
    /// Of plain successes, by their ids.
    pub(super) ids: Vec<Uuid>,
    pub(super) results: Vec<Option<&'a str>>,
    /// How many milliseconds each handler ran.
    pub(super) ran: Vec<Option<i32>>,
    pub(super) epochs: HashMap<Uuid, i32>,
}

impl<'a> Items<'a> {
    pub(super) fn sort(finishes: &'a [Finish]) -> Self {
        let mut seen = HashSet::default();
        let twice = finishes.iter().map(|item| row::uuid(item.task)).filter(|id| !seen.insert(*id));
        let mut items = Self {
            slow: Vec::new(),
            named_twice: twice.collect(),
            ids: Vec::new(),
            results: Vec::new(),
            ran: Vec::new(),
            epochs: HashMap::default(),
        };
        let mut plain = Vec::new();
        for item in finishes {
            match &item.outcome {
                Outcome::Success { result } if !items.is_slow(item) => {
                    let ran = item.ran.map(row::encode_ran);
                    plain.push((row::uuid(item.task), item.epoch, result.as_deref(), ran));
                }
                _ => items.slow.push(item),
            }
        }
        plain.sort_unstable_by_key(|(id, ..)| *id);
        items.ids = each(&plain, |it| it.0);
        items.results = each(&plain, |it| it.2);
        items.ran = each(&plain, |it| it.3);
        items.epochs = plain.iter().map(|it| (it.0, row::encode_count(it.1))).collect();
        items
    }

    pub(super) fn is_slow(&self, item: &Finish) -> bool {
        let plain = matches!(item.outcome, Outcome::Success { .. });
        !plain
            || item.progress.is_some()
            || item.log.is_some()
            || item.then.is_some()
            || self.named_twice.contains(&row::uuid(item.task))
    }
}
