//! `GET /tasks`

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{Problem, TaskPage, TaskView};
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::ListTasks;
use duly_core::task::Task;

use crate::app::App;
use crate::cursor::{self, List};
use crate::error::ApiError;
use crate::query;

/// Payloads and results on one page, about; a page of large tasks is shorter than asked for.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

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
    let limit = limit.map_or(Ok(DEFAULT_PAGE), |text| page_size(&text))?;
    let tenant = app.tenant_of(&headers);
    let before = cursor.map(|cursor| cursor::decode(List::Tasks, tenant, &cursor)).transpose()?;
    // One more than asked for tells whether there is a next page.
    let page = ListTasks { tenant: tenant.clone(), before, limit: limit + 1 };
    let mut tasks = app.engine.list(page).await?;
    let keep = fitting(&tasks, limit as usize);
    let has_more = tasks.len() > keep;
    tasks.truncate(keep);
    let last = tasks.last().filter(|_| has_more).map(|task| task.id);
    let next_cursor = last.map(|last| cursor::encode(List::Tasks, tenant, last));
    let items = tasks.into_iter().map(TaskView::from).collect();
    Ok(axum::Json(TaskPage { items, next_cursor }).into_response())
}

fn page_size(text: &str) -> Result<u32, ApiError> {
    let size = text.parse().ok().filter(|size| (1..=PAGE).contains(size));
    size.ok_or_else(|| query::invalid(format!("`limit` must be a whole number from 1 to {PAGE}")))
}

/// How many of the tasks go on one page: at least one.
fn fitting(tasks: &[Task], limit: usize) -> usize {
    let mut bytes = 0;
    let fits = |task: &&Task| {
        bytes += task.payload.len() + task.result.as_ref().map_or(0, |result| result.len());
        bytes <= PAGE_BYTES
    };
    tasks.iter().take(limit).take_while(fits).count().max(1).min(tasks.len())
}
