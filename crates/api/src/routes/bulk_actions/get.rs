//! `GET /bulk-actions/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::BulkView;

use super::{absent, bulk_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::query;
use crate::responses::{AmbiguousId, BulkActionNotFound};
use crate::routes::PathId;
use crate::routes::tasks::get::patience;

/// See how far a bulk action is
///
/// With `wait` the answer comes as soon as it has ended, or after that time as it is then.
#[utoipa::path(
    get, path = "/bulk-actions/{id}", operation_id = "get_bulk_action", tag = "bulk actions",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("id" = String, Path, description = "The bulk action's id, or its first 13 or \
            more characters if they are those of one only"),
        ("wait" = Option<String>, Query, example = "30s",
            description = "How long to wait for its end, at most 60 s: `30s` or `PT30S`"),
    ),
    responses(
        (status = 200, description = "The bulk action", body = BulkView),
        BulkActionNotFound,
        AmbiguousId,
    ),
)]
pub(crate) async fn get_bulk_action(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    uri: Uri,
) -> Result<Json<BulkView>, ApiError> {
    let [wait] = query::read(&uri, ["wait"])?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    let tenant = &caller.tenant;
    let found = app.engine.bulk(tenant, bulk_id(&app, tenant, id).await?, wait).await?;
    Ok(Json(BulkView::from(found.ok_or_else(absent)?)))
}
