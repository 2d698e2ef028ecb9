//! What is drawn of a workflow: nodes in layers, and the edges between them.

use std::collections::HashMap;

use duly_client::wire::GraphView;
use duly_core::state::Status;
use duly_core::workflow::Condition;
use duly_core::workflow::request::WorkflowSpec;

/// A graph to be drawn.
#[derive(Debug, Default)]
pub(super) struct Picture {
    pub(super) nodes: Vec<Node>,
    /// From, to, and how the first must end.
    pub(super) edges: Vec<(usize, usize, Condition)>,
}

/// A task, or several alike.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) label: String,
    /// Nothing of a workflow that is only a file.
    pub(super) status: Option<Status>,
    /// How many edges lie between it and the beginning, at the most.
    pub(super) layer: usize,
}

impl Picture {
    /// A workflow of a server.
    pub(super) fn of_graph(graph: &GraphView) -> Self {
        let mut picture = Self::default();
        let mut places = HashMap::new();
        for node in &graph.nodes {
            places.insert(node.task_id, picture.nodes.len());
            let times = if node.count > 1 { format!(" ×{}", node.count) } else { String::new() };
            let label = format!("{}{times}", node.key);
            picture.nodes.push(Node { label, status: Some(node.status), layer: 0 });
        }
        for edge in &graph.edges {
            // A parent may belong to no workflow, or to another one.
            if let (Some(from), Some(to)) = (places.get(&edge.from), places.get(&edge.to)) {
                picture.edges.push((*from, *to, edge.on));
            }
        }
        // Ids ascend along edges.
        let order: Vec<_> = (0..picture.nodes.len()).collect();
        picture.place(&order);
        picture
    }

    /// A workflow file.
    pub(super) fn of_spec(spec: &WorkflowSpec) -> Self {
        let mut picture = Self::default();
        for member in spec.members.tasks() {
            let label = member.key.clone();
            picture.nodes.push(Node { label, status: None, layer: 0 });
        }
        for (child, parents) in spec.members.plan().parents.iter().enumerate() {
            picture.edges.extend(parents.iter().map(|(parent, on)| (*parent, child, *on)));
        }
        picture.place(&spec.members.plan().order);
        picture
    }

    /// Puts each node into the first layer after its parents.
    fn place(&mut self, order: &[usize]) {
        let mut parents = vec![Vec::new(); self.nodes.len()];
        for (from, to, _) in &self.edges {
            parents[*to].push(*from);
        }
        for node in order {
            let after = |parent: &usize| self.nodes[*parent].layer + 1;
            self.nodes[*node].layer = parents[*node].iter().map(after).max().unwrap_or(0);
        }
    }

    /// The nodes of each layer.
    pub(super) fn layers(&self) -> Vec<Vec<usize>> {
        let count = self.nodes.iter().map(|node| node.layer + 1).max().unwrap_or(0);
        let mut layers = vec![Vec::new(); count];
        for (index, node) in self.nodes.iter().enumerate() {
            layers[node.layer].push(index);
        }
        layers
    }
}
