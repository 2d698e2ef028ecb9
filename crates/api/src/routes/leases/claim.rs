//! `POST /leases`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{ClaimAnswer, ClaimRequest, LeaseView, Problem};
use duly_core::limits::BODY_BYTES;

use crate::app::App;
use crate::error::ApiError;
use crate::{body, lease_fields};

/// Get work
///
/// Answers as soon as there is work for the session, or with none when `waitSeconds` are over.
/// Asking again with the same `seq` returns the same leases, except for what has ended since, so
/// that no lease is lost with an answer.
#[utoipa::path(
    post, path = "/leases", operation_id = "claim_leases", tag = "workers",
    request_body(content = ClaimRequest),
    responses(
        (status = 200, description = "The leases, perhaps none", body = ClaimAnswer),
        (status = 400, description = "`MALFORMED_JSON`, `INCOMPLETE_BODY`", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "`SESSION_NOT_FOUND`: register again", body = Problem,
            content_type = "application/problem+json"),
        (status = 413, description = "`BODY_TOO_LARGE`", body = Problem,
            content_type = "application/problem+json"),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "`INVALID_FIELDS`, `UNSUPPORTED_FIELD`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn claim_leases(
    State(app): State<App>,
    request: Request,
) -> Result<Json<ClaimAnswer>, ApiError> {
    let (headers, body) = body::read_json(&app, request, BODY_BYTES).await?;
    let (claim, patience) = lease_fields::claim(&body.bytes)?;
    // The claim may wait for a minute; its body need not.
    drop(body);
    let leases = app.engine.claim(&app.tenant_of(&headers)?, claim, patience).await?;
    let leases = leases.iter().map(LeaseView::from).collect();
    Ok(Json(ClaimAnswer { seq: claim.sequence, leases }))
}
