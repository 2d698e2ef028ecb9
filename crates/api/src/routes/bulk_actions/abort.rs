//! `POST /bulk-actions/{id}/abort`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{BulkView, Problem};
use duly_engine::command::control;

use super::{absent, bulk_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::{BulkActionNotFound, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields};

/// Abort a bulk action
///
/// What is done stays done, and nothing more is. Aborting it twice is the same as once.
#[utoipa::path(
    post, path = "/bulk-actions/{id}/abort", operation_id = "abort_bulk_action",
    tag = "bulk actions",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The bulk action's id, or its \
        first 13 or more characters if they are those of one only")),
    responses(
        (status = 200, description = "The bulk action, aborted", body = BulkView),
        BulkActionNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it has ended", body = Problem,
            content_type = "application/problem+json"),
        UnexpectedFields,
    ),
)]
pub(crate) async fn abort_bulk_action(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Json<BulkView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let tenant = &caller.tenant;
    match app.acting(&caller).abort_bulk(tenant, bulk_id(&app, tenant, id).await?).await {
        Ok(task) => Ok(Json(BulkView::from(task))),
        Err(control::Error::Store(error)) => Err(error.into()),
        Err(control::Error::Conflict { status }) => {
            let detail = format!("the bulk action has ended: it is {status}");
            Err(ApiError::new(Code::StateConflict, detail))
        }
        Err(
            control::Error::NotFound
            | control::Error::Reserved
            | control::Error::Payload(_)
            | control::Error::OpenChildren
            | control::Error::OpenDescendant { .. }
            | control::Error::TooFarAhead,
        ) => Err(absent()),
    }
}
