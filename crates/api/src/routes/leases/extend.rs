//! `POST /leases/extend`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{ExtendAnswer, ExtendRequest, ExtendedView, Problem};
use duly_core::limits::BODY_BYTES;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::SessionEnded;
use crate::{body, lease_fields};

/// Ask for more time
///
/// Moves the deadlines of leases to so many seconds from now.
#[utoipa::path(
    post, path = "/leases/extend", operation_id = "extend_leases", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = ExtendRequest, description = "At most 1,000 leases"),
    responses(
        (status = 200, description = "One answer per lease, in order", body = ExtendAnswer),
        SessionEnded,
        (status = 422, description = "`INVALID_FIELDS`; nothing was changed", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn extend_leases(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ExtendAnswer>, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let order = lease_fields::extensions(&body.bytes)?;
    drop(body);
    caller.check_session(order.session)?;
    let leases: Vec<_> = order.leases.iter().map(|lease| (lease.task, lease.epoch)).collect();
    let extended = app.engine.extend(&caller.tenant, order).await?;
    let items = leases.into_iter().zip(extended);
    let items = items.map(|((task, epoch), extended)| ExtendedView::new(task, epoch, extended));
    Ok(Json(ExtendAnswer { items: items.collect() }))
}
