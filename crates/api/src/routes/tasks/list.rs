//! `GET /tasks`

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use duly_client::wire::TaskPage;
use duly_core::filter::Filter;
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::{ListTasks, TaskList};

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::redacted::task_views;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List tasks
///
/// Newest first due time first. A page may be shorter than `limit`, even empty, since it looks at
/// 10,000 tasks at the most; on the last one `nextCursor` is null.
#[utoipa::path(
    get, path = "/tasks", operation_id = "list_tasks", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many tasks; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before, \
            with the same filter"),
        ("filter" = Option<String>, Query, example = "status:FAILED queue:mail since:24h",
            description = "Terms that must all hold: `status:` (several with commas), `queue:`, \
                `type:`, `label.KEY:`, `error:` (a part of its code or message), `group:`, \
                `worker:`, `workflow:`, and `since:` and `until:` with a time ago (`24h`, `PT24H`) or an \
                instant, by the first due time. Values with spaces stand in quotes."),
    ),
    responses(
        (status = 200, description = "One page", body = TaskPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_tasks(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, ApiError> {
    let [limit, cursor, text] = query::read(&uri, ["limit", "cursor", "filter"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let text = text.unwrap_or_default();
    let scope = Scope { tenant: &caller.tenant, filter: &text };
    let filter = query::filter(&app, &text, Filter::parse).await?;
    let before = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let page = ListTasks { tenant: scope.tenant.clone(), filter, before, limit };
    let TaskList { tasks, next_before, scanned, partial } = app.engine.list(page).await?;
    let next_cursor = next_before.map(|last| cursor::encode(scope, &last));
    let items = task_views(&app, scope.tenant, tasks).await?;
    Ok(axum::Json(TaskPage { items, next_cursor, scanned, partial }).into_response())
}
