//! `GET /workflows`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{WorkflowPage, WorkflowSummary};
use duly_core::limits::{DEFAULT_PAGE, LABELS, PAGE};
use duly_core::ports::store::ListWorkflows;
use duly_core::workflow::WorkflowStatus;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List workflows
///
/// The newest first. A page may be shorter than `limit`, even empty; on the last one `nextCursor` is
/// null.
#[utoipa::path(
    get, path = "/workflows", operation_id = "list_workflows", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many workflows; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before, \
            with the same filters"),
        ("status" = Option<String>, Query, example = "RUNNING",
            description = "Only those in this state: RUNNING, SUCCESS, FAILED or CANCELLED"),
        ("name" = Option<String>, Query, description = "Only those of this name"),
        ("labels" = Option<String>, Query, example = "customer:42,region:eu",
            description = "Only those with all of these labels"),
    ),
    responses(
        (status = 200, description = "One page", body = WorkflowPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_workflows(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<WorkflowPage>, ApiError> {
    let names = ["limit", "cursor", "status", "name", "labels"];
    let [limit, cursor, status, name, labels] = query::read(&uri, names)?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let filter = format!("{status:?} {name:?} {labels:?}");
    let scope = Scope { tenant: &caller.tenant, filter: &filter };
    let before = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let page = ListWorkflows {
        tenant: caller.tenant.clone(),
        status: status.map(|text| read_status(&text)).transpose()?,
        name,
        labels: labels.map(|text| read_labels(&text)).transpose()?.unwrap_or_default(),
        before,
        limit,
    };
    let found = app.engine.workflows(page).await?;
    let next_cursor = found.next_before.map(|last| cursor::encode(scope, &last));
    let items = found.workflows.into_iter().map(WorkflowSummary::from).collect();
    Ok(Json(WorkflowPage { items, next_cursor }))
}

fn read_status(text: &str) -> Result<WorkflowStatus, ApiError> {
    let is_meant = |status: &WorkflowStatus| status.as_str().eq_ignore_ascii_case(text);
    WorkflowStatus::ALL.into_iter().find(is_meant).ok_or_else(|| {
        query::invalid("`status` must be RUNNING, SUCCESS, FAILED or CANCELLED")
    })
}

fn read_labels(text: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let pair = |text: &str| {
        let (key, value) = text.split_once(':')?;
        (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
    };
    let labels: Option<BTreeMap<_, _>> = text.split(',').map(pair).collect();
    labels.filter(|labels| labels.len() <= LABELS).ok_or_else(|| {
        query::invalid(format!("`labels` must be pairs such as customer:42,region:eu, at most {LABELS}"))
    })
}
