//! The chain of tasks that a workflow's end waited for.

use std::collections::HashMap;

use crate::id::TaskId;
use crate::ports::store::{Edge, Node};
use crate::state::Status;
use crate::time::Timestamp;

/// The tasks that decided when the workflow ended, or how far it is: from the one that is at work or
/// ended last, each time back to the parent that ended last. The first comes first. The path leads through
/// tasks that were cancelled before they ran, which are left out.
pub fn critical_path<'a>(nodes: &'a [Node], edges: &[Edge]) -> Vec<&'a Node> {
    let counts = |node: &&Node| node.granted_at.is_some() || node.finished_at.is_some();
    let known: HashMap<TaskId, &Node> =
        nodes.iter().filter(counts).map(|node| (node.task, node)).collect();
    let mut latest: HashMap<TaskId, &Node> = HashMap::new();
    for edge in edges {
        let Some(parent) = known.get(&edge.parent) else { continue };
        let found = latest.entry(edge.child).or_insert(parent);
        if end_of(parent) > end_of(found) {
            *found = parent;
        }
    }
    let ran = nodes.iter().filter(|node| node.granted_at.is_some());
    let mut next = ran.max_by_key(|node| (end_of(node), node.task));
    let (mut path, mut steps) = (Vec::new(), 0);
    // Bounded, should stored edges ever form a cycle.
    while let Some(node) = next.filter(|_| steps <= nodes.len()) {
        path.extend(node.granted_at.is_some().then_some(node));
        next = latest.get(&node.task).copied();
        steps += 1;
    }
    path.reverse();
    path
}

/// When a task ended; one that is at work ends after all others.
fn end_of(node: &Node) -> (bool, Option<Timestamp>) {
    let open = node.status == Status::Running;
    (open, if open { node.granted_at } else { node.finished_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::TypeName;
    use crate::workflow::Condition;

    fn node(number: u32, span: Option<(i64, Option<i64>)>) -> Node {
        let at = Timestamp::from_millis;
        let status = match span {
            None => Status::Cancelled,
            Some((_, None)) => Status::Running,
            Some((_, Some(_))) => Status::Success,
        };
        Node {
            task: TaskId::mint(at(1), number, 0),
            key: number.to_string(),
            task_type: TypeName::new("t").unwrap(),
            status,
            run: 1,
            granted_at: span.map(|(from, _)| at(from)),
            finished_at: span.map_or(Some(at(99)), |(_, to)| to.map(at)),
        }
    }

    fn path(nodes: &[Node], edges: &[(usize, usize)]) -> String {
        let edge = |(from, to): &(usize, usize)| Edge {
            parent: nodes[*from].task,
            child: nodes[*to].task,
            on: Condition::Success,
        };
        let edges: Vec<_> = edges.iter().map(edge).collect();
        critical_path(nodes, &edges).iter().map(|node| node.key.as_str()).collect()
    }

    #[test]
    fn it_follows_the_parent_that_ended_last() {
        let nodes = [(0, 10), (10, 30), (10, 50), (50, 60)];
        let nodes: Vec<_> =
            (0..).zip(nodes).map(|(n, (from, to))| node(n, Some((from, Some(to))))).collect();
        assert_eq!(path(&nodes, &[(0, 1), (0, 2), (1, 3), (2, 3)]), "023");
    }

    #[test]
    fn it_leads_to_what_is_at_work_and_leaves_out_what_never_ran() {
        let nodes = [node(0, Some((0, Some(10)))), node(1, Some((10, None))), node(2, None)];
        assert_eq!(path(&nodes, &[(0, 1), (1, 2)]), "01");
        assert_eq!(path(&[node(0, None)], &[]), "");
    }

    #[test]
    fn it_leads_through_what_was_cancelled() {
        let failed = node(0, Some((0, Some(90))));
        let nodes = [failed, node(1, None), node(2, Some((99, Some(100))))];
        assert_eq!(path(&nodes, &[(0, 1), (1, 2)]), "02");
    }
}
