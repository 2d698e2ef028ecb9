//! From the keys of tasks and what each waits for to an order in which parents come first.
//!
//! Nothing here recurses: a workflow may be as deep as it is large.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Condition;
use crate::limits::{CHILDREN, DEPENDENCIES, WORKFLOW_EDGES};

/// One thing that a task waits for, by the key of another task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The other task's key.
    pub key: String,
    /// How it must end.
    pub on: Condition,
}

/// What is wrong with the edges between tasks. Tasks and edges are numbered as they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There are more tasks than are allowed.
    #[error("has {count} tasks and may have {limit}")]
    TooManyTasks {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// There are more edges than are allowed.
    #[error("has {count} edges and may have {WORKFLOW_EDGES}")]
    TooManyEdges {
        /// How many there are.
        count: usize,
    },
    /// A task waits for more tasks than are allowed.
    #[error("has {count} dependencies and may have {DEPENDENCIES}")]
    TooManyParents {
        /// Which task.
        task: usize,
        /// How many it waits for.
        count: usize,
    },
    /// More tasks wait for a task than are allowed.
    #[error("has {count} children and may have {CHILDREN}")]
    TooManyChildren {
        /// Which task.
        task: usize,
        /// How many wait for it.
        count: usize,
    },
    /// A task waits for itself.
    #[error("a task cannot depend on itself")]
    SelfEdge {
        /// Which task.
        task: usize,
        /// Which of its edges.
        edge: usize,
    },
    /// There is no task with this key.
    #[error("there is no task `{key}`")]
    UnknownKey {
        /// Which task.
        task: usize,
        /// Which of its edges.
        edge: usize,
        /// What it names.
        key: String,
    },
    /// A task waits for the same task twice.
    #[error("`{key}` is named twice")]
    DuplicateEdge {
        /// Which task.
        task: usize,
        /// Which of its edges.
        edge: usize,
        /// What it names.
        key: String,
    },
    /// Tasks wait for each other.
    #[error("the tasks wait for each other: {}", .path.join(" -> "))]
    Cycle {
        /// The first task of the path.
        task: usize,
        /// Their keys, each a parent of the next; the first and the last are the same.
        path: Vec<String>,
    },
}

/// An order in which no task comes before one that it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The tasks, parents first.
    pub order: Vec<usize>,
    /// What each task waits for.
    pub parents: Vec<Vec<(usize, Condition)>>,
}

impl Plan {
    /// Orders tasks; each has a key of its own. All flaws that can be told are told.
    pub fn new<'a>(
        tasks: impl IntoIterator<Item = (&'a str, &'a [Needed])>,
        most: usize,
    ) -> Result<Self, Vec<Flaw>> {
        let tasks: Vec<_> = tasks.into_iter().collect();
        let mut flaws = Vec::new();
        if tasks.len() > most {
            flaws.push(Flaw::TooManyTasks { count: tasks.len(), limit: most });
        }
        let count = tasks.iter().map(|(_, needed)| needed.len()).sum();
        if count > WORKFLOW_EDGES {
            flaws.push(Flaw::TooManyEdges { count });
        }
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let parents = resolve(&tasks, &mut flaws);
        check_children(&parents, &mut flaws);
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let graph = graph(&parents);
        match toposort(&graph, None) {
            Ok(order) => {
                Ok(Self { order: order.into_iter().map(|node| graph[node]).collect(), parents })
            }
            Err(cycle) => {
                let path = path_around(&graph, cycle.node_id());
                let task = path.first().copied().unwrap_or_default();
                let path = path.into_iter().map(|task| tasks[task].0.to_owned()).collect();
                Err(vec![Flaw::Cycle { task, path }])
            }
        }
    }
}

/// Finds what the keys name.
fn resolve(tasks: &[(&str, &[Needed])], flaws: &mut Vec<Flaw>) -> Vec<Vec<(usize, Condition)>> {
    let known: HashMap<_, _> =
        tasks.iter().enumerate().map(|(index, (key, _))| (*key, index)).collect();
    let mut parents = Vec::with_capacity(tasks.len());
    for (task, (_, needed)) in tasks.iter().enumerate() {
        if needed.len() > DEPENDENCIES {
            flaws.push(Flaw::TooManyParents { task, count: needed.len() });
        }
        let (mut own, mut seen) = (Vec::with_capacity(needed.len()), HashSet::new());
        for (edge, Needed { key, on }) in needed.iter().enumerate() {
            match known.get(key.as_str()) {
                None => flaws.push(Flaw::UnknownKey { task, edge, key: key.clone() }),
                Some(parent) if *parent == task => flaws.push(Flaw::SelfEdge { task, edge }),
                Some(parent) if !seen.insert(*parent) => {
                    flaws.push(Flaw::DuplicateEdge { task, edge, key: key.clone() });
                }
                Some(parent) => own.push((*parent, *on)),
            }
        }
        parents.push(own);
    }
    parents
}

fn check_children(parents: &[Vec<(usize, Condition)>], flaws: &mut Vec<Flaw>) {
    let mut children = vec![0_usize; parents.len()];
    for (parent, _) in parents.iter().flatten() {
        children[*parent] += 1;
    }
    for (task, count) in children.into_iter().enumerate().filter(|(_, count)| *count > CHILDREN) {
        flaws.push(Flaw::TooManyChildren { task, count });
    }
}

/// Nodes are the numbers of tasks. The sort lists what was added last first, nodes as well as edges: so all
/// are added backwards, and tasks that may start together keep their order.
fn graph(parents: &[Vec<(usize, Condition)>]) -> DiGraph<usize, ()> {
    let mut graph = DiGraph::with_capacity(parents.len(), 0);
    for task in (0..parents.len()).rev() {
        graph.add_node(task);
    }
    let node = |task: usize| NodeIndex::new(parents.len() - 1 - task);
    for (child, own) in parents.iter().enumerate().rev() {
        for (parent, _) in own.iter().rev() {
            graph.add_edge(node(*parent), node(child), ());
        }
    }
    graph
}

/// A shortest way from a task on a cycle back to itself.
fn path_around(graph: &DiGraph<usize, ()>, start: NodeIndex) -> Vec<usize> {
    let mut before: HashMap<NodeIndex, NodeIndex> = HashMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for next in graph.neighbors(at) {
            if next == start {
                let mut path = vec![graph[start]];
                let mut step = at;
                while step != start {
                    path.push(graph[step]);
                    step = before[&step];
                }
                path.push(graph[start]);
                path.reverse();
                return path;
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = before.entry(next) {
                entry.insert(at);
                waiting.push_back(next);
            }
        }
    }
    vec![graph[start]]
}

#[cfg(test)]
mod tests;
