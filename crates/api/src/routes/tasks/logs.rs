//! `GET /tasks/{id}/logs`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{LogPageView, LogPartView};
use duly_core::limits::{DEFAULT_LOG_PAGE_BYTES, LOG_PAGE_BYTES};
use duly_core::ports::store::{LogPage, LogPosition, ReadLogs};

use super::get::{absent, patience, task_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::{ApiError, Code};
use crate::responses::{AmbiguousId, InvalidCursor, TaskNotFound};
use crate::routes::PathId;
use crate::{cursor, query};

/// Read what a task has logged
///
/// All attempts that are kept, oldest first, while they run and afterwards. With `wait`, where
/// there is nothing after `after` and more may come, the answer comes as soon as there is
/// something, the run has ended, or the time is over: asking again and again with `next` follows
/// the log live.
#[utoipa::path(
    get, path = "/tasks/{id}/logs", operation_id = "read_logs", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("id" = String, Path, description = "The task's id, or its first 13 or more \
            characters if they are those of one task only"),
        ("epoch" = Option<u64>, Query, minimum = 0, maximum = 4_294_967_295u32, example = 1,
            description = "Only the attempt under this grant"),
        ("after" = Option<String>, Query, description = "The `next` of the page before"),
        ("wait" = Option<String>, Query, example = "30s",
            description = "How long to wait for more, at most 60 s: `30s` or `PT30S`"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1_048_576, example = 65536,
            description = "About how many bytes, but at least one piece; each piece counts for 128 \
                more than its text. 262,144 if absent"),
    ),
    responses(
        (status = 200, description = "The next pieces, perhaps none", body = LogPageView),
        InvalidCursor,
        TaskNotFound,
        AmbiguousId,
    ),
)]
pub(crate) async fn read_logs(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    uri: Uri,
) -> Result<Json<LogPageView>, ApiError> {
    let [epoch, after, wait, limit] = query::read(&uri, ["epoch", "after", "wait", "limit"])?;
    let epoch = epoch.map(|text| whole(&text)).transpose()?;
    let wait = wait.map(|text| patience(&text)).transpose()?.unwrap_or_default();
    let limit = query::limit(limit, bytes(DEFAULT_LOG_PAGE_BYTES), bytes(LOG_PAGE_BYTES))?;
    let tenant = &caller.tenant;
    let task = task_id(&app, tenant, id).await?;
    let name = task.to_string();
    let scope = Scope { tenant, filter: &name };
    let after = after.map_or(Ok(LogPosition::default()), |after| place(scope, &after))?;
    let limit = limit as usize;
    let read = ReadLogs { tenant: tenant.clone(), task, epoch, after, limit };
    let page = app.engine.logs(read, wait).await?;
    let LogPage { parts, next, live } = page.ok_or_else(absent)?;
    let items = parts.into_iter().map(LogPartView::from).collect();
    Ok(Json(LogPageView { items, next: cursor::encode(scope, &next), live }))
}

fn place(scope: Scope<'_>, after: &str) -> Result<LogPosition, ApiError> {
    let detail = "take `after` from the `next` of the same task's logs, or leave it out";
    cursor::decode(scope, after).map_err(|_| ApiError::new(Code::InvalidCursor, detail))
}

fn whole(text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_| query::invalid("`epoch` must be a whole number from 0"))
}

fn bytes(limit: usize) -> u32 {
    u32::try_from(limit).expect("a small limit")
}
