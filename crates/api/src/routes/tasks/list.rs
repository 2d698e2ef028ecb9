//! `GET /tasks`

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{Problem, TaskPage, TaskView};
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::ListTasks;

use crate::app::App;
use crate::error::ApiError;
use crate::{cursor, query};

/// List tasks
///
/// Newest first due time first. A page may be shorter than `limit`; on the last one
/// `nextCursor` is null.
#[utoipa::path(
    get, path = "/tasks", operation_id = "list_tasks", tag = "tasks",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many tasks; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = TaskPage),
        (status = 400, description = "`INVALID_PARAMETER`, `INVALID_CURSOR`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list_tasks(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let [limit, cursor] = query::read(&uri, ["limit", "cursor"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let tenant = app.tenant_of(&headers);
    let before = cursor.map(|cursor| cursor::decode(tenant, &cursor)).transpose()?;
    let page = ListTasks { tenant: tenant.clone(), before, limit };
    let page = app.engine.list(page).await?;
    let next_cursor = page.next_before.map(|last| cursor::encode(tenant, &last));
    let items = page.tasks.into_iter().map(TaskView::from).collect();
    Ok(axum::Json(TaskPage { items, next_cursor }).into_response())
}
