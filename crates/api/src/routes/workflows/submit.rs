//! `POST /workflows`

use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{Problem, WorkflowAnswer, WorkflowRequest};
use duly_core::limits::WORKFLOW_BYTES;
use duly_core::submit::FieldError;
use duly_core::workflow::request::WorkflowSpec;
use duly_engine::command::workflows::Refused;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::{QuotaExceeded, TenantSuspended};
use crate::routes::tasks::submit::{REPLAYED, header_key, trace};
use crate::{body, workflow_fields};

/// Submit a workflow
///
/// All its tasks are stored in one commit, or none. Each starts as soon as the tasks that it depends on
/// have ended as it asks. Give an idempotency key if you may have to repeat the call: the same key with
/// the same body leads to the same workflow for 24 hours.
#[utoipa::path(
    post, path = "/workflows", operation_id = "submit_workflow", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Submitter))),
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 characters, bare or \
            quoted; the field `idempotencyKey` says the same"),
    ),
    request_body(content = WorkflowRequest, description = "At most 10,000 tasks and 32 MiB"),
    responses(
        (status = 201, description = "The workflow was taken", body = WorkflowAnswer, headers(
            ("Location" = String, description = "Where to read the workflow"))),
        (status = 200, description = "The idempotency key led to a workflow taken before",
            body = WorkflowAnswer, headers(("Idempotency-Replayed" = bool, description = "`true`"))),
        TenantSuspended,
        (status = 413, description = "`BODY_TOO_LARGE`, `PAYLOAD_TOO_LARGE`", body = Problem,
            content_type = "application/problem+json"),
        QuotaExceeded,
        (status = 422, description = "`INVALID_FIELDS`, `IDEMPOTENCY_KEY_REUSED`, `LANE_LIMIT`, \
            `TENANT_LIMIT`; nothing was stored", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn submit_workflow(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let key = header_key(request.headers())?;
    let trace = trace(request.headers());
    let body = body::read_json(&app, request, WORKFLOW_BYTES).await?;
    let spec = workflow_fields::read(&body.bytes, key)?;
    let spec = WorkflowSpec { members: spec.members.traced(trace.as_ref()), ..spec };
    drop(body);
    caller.check_members(&spec.members)?;
    let places = workflow_fields::places(&spec);
    let accepted = app.engine.submit_workflow(&caller.tenant, spec).await;
    let accepted = accepted.map_err(|refused| {
        let place = |parent| places.get(parent).cloned().unwrap_or_default();
        match &refused {
            Refused::UnknownParent { parent } => {
                pointing(place(parent), "UNKNOWN_TASK", refused.to_string())
            }
            Refused::TooManyChildren { parent } => {
                pointing(place(parent), "TOO_MANY", refused.to_string())
            }
            Refused::TooFarAhead { key } => {
                let detail = "lies more than 400 days ahead".to_owned();
                pointing(format!("/tasks/{key}/runAt"), "OUT_OF_RANGE", detail)
            }
            Refused::KeyReused => ApiError::new(Code::IdempotencyKeyReused, refused.to_string()),
            Refused::LaneLimit => ApiError::new(Code::LaneLimit, refused.to_string()),
            Refused::Payload { key, why } => {
                ApiError::bad_payload(format!("/tasks/{key}/payload"), *why)
            }
            Refused::Denied(denied) => ApiError::from(denied.clone()),
            Refused::Closed => ApiError::shutting_down(),
            Refused::Store(error) => ApiError::from(error),
        }
    })?;
    let (id, replayed) = (accepted.id, accepted.replayed);
    let answer = WorkflowAnswer { workflow_id: id, status: accepted.status, tasks: accepted.tasks };
    let mut response = axum::Json(answer).into_response();
    let headers = response.headers_mut();
    let location = HeaderValue::try_from(format!("/v1/workflows/{id}"));
    headers.insert(LOCATION, location.expect("an id fits a header"));
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

fn pointing(pointer: String, code: &'static str, detail: String) -> ApiError {
    ApiError::fields(vec![FieldError { pointer, code, detail }], 0)
}
