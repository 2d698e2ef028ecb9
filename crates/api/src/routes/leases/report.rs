//! `POST /leases/progress` and `POST /leases/logs`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{LogsRequest, Problem, ProgressRequest, ReportAnswer, ReportedView};
use duly_core::limits::BATCH_BYTES;
use duly_core::ports::store::Report;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::SessionEnded;
use crate::{body, lease_fields};

/// Say how far attempts are
///
/// The last word counts, and shows as `progress` of the task; send one a second at the most. Each
/// item is taken or refused by itself.
#[utoipa::path(
    post, path = "/leases/progress", operation_id = "report_progress", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = ProgressRequest, description = "At most 1,000 items and 32 MiB"),
    responses(
        (status = 200, description = "One answer per item, in order", body = ReportAnswer),
        SessionEnded,
        (status = 422, description = "`INVALID_FIELDS`; nothing was kept", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn report_progress(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReportAnswer>, ApiError> {
    report(&app, &caller, request, lease_fields::report::progress).await
}

/// Say what attempts log
///
/// Each piece has its place in the attempt's log: what is there already is not added again, so
/// that a piece may be sent twice. Send them once a second at the most. The last 64 KiB of an
/// attempt's log are kept.
#[utoipa::path(
    post, path = "/leases/logs", operation_id = "report_logs", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = LogsRequest, description = "At most 1,000 items and 32 MiB"),
    responses(
        (status = 200, description = "One answer per item, in order", body = ReportAnswer),
        SessionEnded,
        (status = 422, description = "`INVALID_FIELDS`; nothing was kept", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn report_logs(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReportAnswer>, ApiError> {
    report(&app, &caller, request, lease_fields::report::logs).await
}

async fn report(
    app: &App,
    caller: &Caller,
    request: Request,
    read: fn(&[u8]) -> Result<Report, ApiError>,
) -> Result<Json<ReportAnswer>, ApiError> {
    let body = body::read_json(app, request, BATCH_BYTES).await?;
    let report = read(&body.bytes)?;
    drop(body);
    caller.check_session(report.session)?;
    let leases: Vec<_> = report.items.iter().map(|item| (item.task, item.epoch)).collect();
    let reported = app.engine.report(&caller.tenant, report).await?;
    let items = leases.into_iter().zip(reported).map(|((task_id, epoch), reported)| {
        let status = reported.into();
        ReportedView { task_id, epoch, status }
    });
    Ok(Json(ReportAnswer { items: items.collect() }))
}
