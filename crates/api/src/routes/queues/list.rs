//! `GET /queues`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::QueuePage;
use duly_core::limits::{DEFAULT_PAGE, LIST_COUNT_ROWS, PAGE};
use duly_core::ports::store::{ListQueues, QueueList};

use super::view;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List queues
///
/// By name, each with what is in it. A queue is there as soon as a task was submitted to it.
/// Counting ends at 1,000 here, at 10,000 for one queue; `more` then says so.
#[utoipa::path(
    get, path = "/queues", operation_id = "list_queues", tag = "queues",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = QueuePage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_queues(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<QueuePage>, ApiError> {
    let [limit, cursor] = query::read(&uri, ["limit", "cursor"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let scope = Scope { tenant: &caller.tenant, filter: "" };
    let after = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let tenant = scope.tenant.clone();
    let page = ListQueues { tenant, after, limit, count_to: LIST_COUNT_ROWS };
    let QueueList { queues, next_after } = app.engine.queues(page).await?;
    let next_cursor = next_after.map(|last| cursor::encode(scope, &last));
    let items = queues.into_iter().map(|state| view(&app, scope.tenant, state)).collect();
    Ok(Json(QueuePage { items, next_cursor }))
}
