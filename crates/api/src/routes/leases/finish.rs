//! `POST /leases/finish`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{FinishAnswer, FinishRequest, FinishedView, Problem};
use duly_core::limits::BATCH_BYTES;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::SessionNotFound;
use crate::{body, lease_fields};

/// Commit outcomes
///
/// Each outcome is committed or refused by itself; after the answer what is `DONE` is durable,
/// and sending it again answers the same. One outcome that cannot be read refuses the whole
/// request, and nothing is committed. A success may carry new tasks in `then`, which are stored in
/// its commit.
#[utoipa::path(
    post, path = "/leases/finish", operation_id = "finish_leases", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = FinishRequest, description = "At most 1,000 outcomes and 32 MiB"),
    responses(
        (status = 200, description = "One answer per outcome, in order", body = FinishAnswer),
        SessionNotFound,
        (status = 422, description = "`INVALID_FIELDS`; nothing was committed", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn finish_leases(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<FinishAnswer>, ApiError> {
    let body = body::read_json(&app, request, BATCH_BYTES).await?;
    let (session, batch) = lease_fields::finishes(&body.bytes, &caller.tenant, &app.random)?;
    drop(body);
    caller.check_session(session)?;
    batch
        .iter()
        .filter_map(|finish| finish.added.as_deref())
        .try_for_each(|added| caller.check_members(&added.members))?;
    let leases: Vec<_> = batch.iter().map(|finish| (finish.task, finish.epoch)).collect();
    let finished = app.engine.finish(&caller.tenant, session, batch).await?;
    let view = |((task_id, epoch), finished): ((_, _), duly_core::lease::Finished)| FinishedView {
        task_id,
        epoch,
        status: finished.into(),
    };
    let items = leases.into_iter().zip(finished).map(view).collect();
    Ok(Json(FinishAnswer { items }))
}
