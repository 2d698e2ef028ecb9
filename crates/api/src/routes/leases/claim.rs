//! `POST /leases`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{ClaimAnswer, ClaimRequest, LeaseRef, LeaseView, Problem};
use duly_core::limits::BODY_BYTES;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::SessionEnded;
use crate::{body, lease_fields};

/// Get work
///
/// Answers as soon as there is work for the session, or with none when `waitSeconds` are over.
/// Asking again with the same `seq` returns the same leases, except for what has ended since, so
/// that no lease is lost with an answer. A claim that waits is also answered, without leases, as soon as
/// a lease of the session is gone: a worker learns of a cancellation within milliseconds. `queues` and
/// `types` narrow this one claim to some of what the session registered.
#[utoipa::path(
    post, path = "/leases", operation_id = "claim_leases", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = ClaimRequest),
    responses(
        (status = 200, description = "The leases, perhaps none", body = ClaimAnswer),
        SessionEnded,
        (status = 422, description = "`INVALID_FIELDS`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn claim_leases(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ClaimAnswer>, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let mut asked = lease_fields::claim(&body.bytes)?;
    // The claim may wait for a minute; its body need not.
    drop(body);
    caller.check_session(asked.claim.session)?;
    let tenant = caller.tenant;
    if asked.is_narrowed() {
        asked.narrow(&app.engine.session(&tenant, asked.claim.session).await?)?;
    }
    let seq = asked.claim.sequence;
    let claimed = app.engine.claim(&tenant, asked.claim, asked.patience).await?;
    let leases = claimed.leases.iter().map(LeaseView::from).collect();
    let (lost, cancel) = LeaseRef::sort(&claimed.taken_back);
    Ok(Json(ClaimAnswer { seq, leases, lost, cancel }))
}
