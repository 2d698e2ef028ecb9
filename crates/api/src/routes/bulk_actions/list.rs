//! `GET /bulk-actions`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{BulkPage, BulkView};
use duly_core::filter::Filter;
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::name::TypeName;
use duly_core::ports::store::ListTasks;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List bulk actions
///
/// Newest first. A page may be shorter than `limit`, even empty; on the last one `nextCursor` is
/// null.
#[utoipa::path(
    get, path = "/bulk-actions", operation_id = "list_bulk_actions", tag = "bulk actions",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = BulkPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_bulk_actions(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<BulkPage>, ApiError> {
    let [limit, cursor] = query::read(&uri, ["limit", "cursor"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    // The same list of tasks under another name, so its cursors are told apart by the filter.
    let scope = Scope { tenant: &caller.tenant, filter: "type:duly.bulk" };
    let before = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let filter = Filter { task_type: Some(TypeName::bulk()), ..Filter::default() };
    let page = ListTasks { tenant: scope.tenant.clone(), filter, before, limit };
    let found = app.engine.list(page).await?;
    let next_cursor = found.next_before.map(|last| cursor::encode(scope, &last));
    let items = found.tasks.into_iter().map(BulkView::from).collect();
    Ok(Json(BulkPage { items, next_cursor }))
}
