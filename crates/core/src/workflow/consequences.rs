//! What the end of a task means for others of its workflow, as far as every store decides it alike. Ids are
//! of any type, since stores have their own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use super::{Condition, DEPENDENCY_NOT_MET, WORKFLOW_CANCELLED, WORKFLOW_FAILED};
use crate::task::Failure;

/// The error of a task that is cancelled with its workflow. Without a reason the workflow fails fast.
pub fn swept(reason: Option<String>) -> Failure {
    match reason {
        Some(reason) => Failure::new(WORKFLOW_CANCELLED, reason),
        None => Failure::new(WORKFLOW_FAILED, "another task of the workflow failed"),
    }
}

/// Whether a task with this error was cancelled since others failed.
pub fn was_cancelled_for_others(error: &Failure) -> bool {
    matches!(error.code.as_str(), DEPENDENCY_NOT_MET | WORKFLOW_FAILED)
}

/// The tasks that are reached through `failure` or `done` edges, which take care of failures. An edge is a
/// parent, a child and its condition.
pub fn failure_handlers<T: Copy + Eq + Hash>(
    edges: impl IntoIterator<Item = (T, T, Condition)>,
) -> HashSet<T> {
    let (mut children, mut next) = (HashMap::<T, Vec<T>>::new(), Vec::new());
    for (parent, child, on) in edges {
        children.entry(parent).or_default().push(child);
        next.extend(on.handles_failure().then_some(child));
    }
    let mut found = HashSet::new();
    while let Some(task) = next.pop() {
        if found.insert(task) {
            next.extend(children.get(&task).into_iter().flatten());
        }
    }
    found
}

/// Those of the tasks of which no edge stays broken if all of them run again. Each comes with the parents of
/// its broken edges; a failed task starts whatever its parents did and comes with none.
pub fn restartable<T: Copy + Ord>(tasks: BTreeMap<T, Vec<T>>) -> BTreeSet<T> {
    let mut again: BTreeSet<T> = tasks.keys().copied().collect();
    let mut children = BTreeMap::<T, Vec<T>>::new();
    let mut stuck = Vec::new();
    for (task, parents) in &tasks {
        stuck.extend(parents.iter().any(|parent| !tasks.contains_key(parent)).then_some(*task));
        for parent in parents {
            children.entry(*parent).or_default().push(*task);
        }
    }
    while let Some(task) = stuck.pop() {
        if again.remove(&task) {
            stuck.extend(children.get(&task).into_iter().flatten());
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_handler_is_one_too() {
        let (s, f, d) = (Condition::Success, Condition::Failure, Condition::Done);
        let edges = [(1, 2, s), (1, 3, f), (3, 4, s), (2, 5, s), (5, 6, d)];
        assert_eq!(failure_handlers(edges), HashSet::from([3, 4, 6]));
    }

    #[test]
    fn a_task_stays_if_one_of_its_broken_parents_does() {
        let tasks = BTreeMap::from([
            (1, vec![]),
            (2, vec![1]),
            // 9 does not run again.
            (3, vec![1, 9]),
            (4, vec![3]),
            (5, vec![2, 4]),
        ]);
        assert_eq!(restartable(tasks), BTreeSet::from([1, 2]));
        let chain = |first| (1..20_000).map(|task| (task, vec![task - 1])).chain([(0, first)]);
        assert_eq!(restartable(chain(vec![]).collect()).len(), 20_000);
        assert_eq!(restartable(chain(vec![-1]).collect()).len(), 0);
    }
}
