//! `GET /workflows/{id}/graph`

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{EdgeView, GraphView, NodeInGraph};
use duly_core::id::TaskId;
use duly_core::ports::store::{Edge, Graph, Node};
use duly_core::workflow::Condition;

use super::{absent, workflow_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::query;
use crate::responses::WorkflowNotFound;
use crate::routes::PathId;

/// Read the graph of a workflow
///
/// All tasks with their states, and the edges between them. With `collapse=true`, tasks of the same type
/// and state that have the same parents and the same children are one node.
#[utoipa::path(
    get, path = "/workflows/{id}/graph", operation_id = "get_graph", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("id" = String, Path, description = "The workflow's id"),
        ("collapse" = Option<bool>, Query, description = "Whether identical siblings are one node"),
    ),
    responses(
        (status = 200, description = "The graph", body = GraphView),
        WorkflowNotFound,
    ),
)]
pub(crate) async fn get_graph(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    uri: Uri,
) -> Result<Json<GraphView>, ApiError> {
    let [collapse] = query::read(&uri, ["collapse"])?;
    let collapse = match collapse.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(query::invalid("`collapse` must be true or false")),
    };
    let found = app.engine.graph(&caller.tenant, workflow_id(id)?).await?;
    let Graph { workflow, nodes, edges } = found.ok_or_else(absent)?;
    let alike = if collapse { alike(&nodes, &edges) } else { HashMap::new() };
    let stands_for = |task: TaskId| alike.get(&task).copied().unwrap_or(task);
    let mut counts: HashMap<TaskId, u64> = HashMap::new();
    for node in &nodes {
        *counts.entry(stands_for(node.task)).or_default() += 1;
    }
    let seen = |node: Node| {
        let count = counts.get(&node.task).copied()?;
        Some(NodeInGraph {
            task_id: node.task,
            key: node.key,
            r#type: node.task_type.into(),
            status: node.status,
            run: node.run,
            leased_at: node.granted_at,
            finished_at: node.finished_at,
            count,
        })
    };
    let edge = |Edge { parent, child, on }: Edge| EdgeView {
        from: stands_for(parent),
        to: stands_for(child),
        on,
    };
    let mut edges: Vec<_> = edges.into_iter().map(edge).collect();
    if collapse {
        edges.sort_unstable();
        edges.dedup();
    }
    Ok(Json(GraphView {
        workflow_id: workflow.id,
        name: workflow.name,
        status: workflow.status,
        nodes: nodes.into_iter().filter_map(seen).collect(),
        edges,
    }))
}

/// For each task that is like an earlier one, that one.
fn alike(nodes: &[Node], edges: &[Edge]) -> HashMap<TaskId, TaskId> {
    type Ends = BTreeSet<(TaskId, Condition)>;
    let mut ends: HashMap<TaskId, (Ends, Ends)> = HashMap::new();
    for Edge { parent, child, on } in edges {
        ends.entry(*child).or_default().0.insert((*parent, *on));
        ends.entry(*parent).or_default().1.insert((*child, *on));
    }
    let mut first: BTreeMap<_, TaskId> = BTreeMap::new();
    let mut alike = HashMap::new();
    for node in nodes {
        let Some(own) = ends.get(&node.task) else { continue };
        let like = (node.task_type.as_str(), node.status, own);
        let known = *first.entry(like).or_insert(node.task);
        if known != node.task {
            alike.insert(node.task, known);
        }
    }
    alike
}
