//! `POST /bulk-actions`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{BulkAnswer, BulkPreview, BulkRequest, BulkView, Problem};
use duly_core::limits::BODY_BYTES;
use duly_engine::command::bulk::Preview;
use duly_engine::command::submit::Accepted;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::TenantSuspended;
use crate::routes::tasks::submit::{REPLAYED, header_key};
use crate::{body, bulk_fields};

/// Order something for many tasks
///
/// The order is kept and carried out step by step: it outlives a crash, and no task is touched
/// twice. What is submitted, or ends, after the order was given is left alone. With `dryRun`
/// nothing is done, and the answer tells for how many tasks it would be.
#[utoipa::path(
    post, path = "/bulk-actions", operation_id = "start_bulk_action", tag = "bulk actions",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key with the same \
        body gives the same order, for 24 hours")),
    request_body(content = BulkRequest),
    responses(
        (status = 200, description = "With `dryRun`: what would be done. With the idempotency key \
            of an earlier order: that order", body = BulkAnswer, headers(("Idempotency-Replayed" =
            Option<bool>, description = "`true` with an earlier order"))),
        (status = 202, description = "The order is kept", body = BulkView, headers(
            ("Location" = String, description = "Where to read how far it is"))),
        TenantSuspended,
        (status = 422, description = "`INVALID_FIELDS`: also if it would mean every task without \
            saying so; `IDEMPOTENCY_KEY_REUSED`, `LANE_LIMIT`", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn start_bulk_action(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let tenant = &caller.tenant;
    let key = header_key(&headers)?;
    let read = bulk_fields::read(&body.bytes, app.engine.now().await?)?;
    if read.dry_run {
        let preview = app.engine.preview_bulk(tenant, &read.order, read.filter).await?;
        let Preview { count, more, sample } = preview;
        return Ok(Json(BulkPreview { dry_run: true, count, more, sample }).into_response());
    }
    let Accepted { task, replayed, .. } =
        app.acting(&caller).start_bulk(tenant, &read.order, key).await?;
    let location = format!("/v1/bulk-actions/{}", task.id);
    let status = if replayed { StatusCode::OK } else { StatusCode::ACCEPTED };
    let view = Json(BulkView::from(task));
    let mut response = (status, [(LOCATION, location)], view).into_response();
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
