//! `POST /tasks`

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use duly_client::wire::{Problem, SubmitRequest, TaskView, Warning};
use duly_core::limits::BODY_BYTES;
use duly_core::name::TenantName;
use duly_core::submit::{FieldError, Spec, check_key};
use duly_core::trace::TraceParent;
use duly_engine::command::submit::Accepted;

use super::get::patience;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::redacted::task_view;
use crate::responses::{PayloadTooLarge, QuotaExceeded, TenantSuspended};
use crate::{body, query, task_fields};

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Submit a task
///
/// After the answer the task is durable. Give an idempotency key if you may have to repeat the
/// call: the same key with the same body leads to the same task for 24 hours. With `wait` the
/// answer comes as soon as the run has ended, or after that time with the task as it is then.
#[utoipa::path(
    post, path = "/tasks", operation_id = "submit_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Submitter))),
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 characters, bare or \
            quoted; the field `idempotencyKey` says the same"),
        ("traceparent" = Option<String>, Header, description = "W3C Trace Context: kept with the task \
            as the label `duly.traceparent`, and part of its events; ignored where it is not valid"),
        ("wait" = Option<String>, Query, description = "How long to wait for the outcome, at most \
            60 s: `30s` or `PT30S`; not at all if absent"),
    ),
    request_body(content = SubmitRequest, description = "At most 1 MiB of payload"),
    responses(
        (status = 201, description = "The task was taken", body = TaskView, headers(
            ("Location" = String, description = "Where to read the task"))),
        (status = 200, description = "The idempotency key led to a task taken before",
            body = TaskView, headers(("Idempotency-Replayed" = bool, description = "`true`"))),
        TenantSuspended,
        QuotaExceeded,
        (status = 409, description = "`WORKFLOW_ENDED`", body = Problem,
            content_type = "application/problem+json"),
        PayloadTooLarge,
        (status = 422, description = "`INVALID_FIELDS`, `UNSUPPORTED_FIELD`, \
            `CONFLICTING_FIELDS`, `IDEMPOTENCY_KEY_REUSED`, `LANE_LIMIT`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn submit_task(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    if !body::media_type(&head.headers)?.eq_ignore_ascii_case("application/json") {
        return Err(body::unsupported("send the task as JSON with Content-Type: application/json"));
    }
    let [wait] = query::read(&head.uri, ["wait"])?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    let key = header_key(&head.headers)?;
    let body = body::read(&app, &head.headers, body, BODY_BYTES).await?;
    let spec = task_fields::read(&body.bytes, key)?;
    let spec = Spec { trace: trace(&head.headers), ..spec };
    drop(body);
    caller.check_scope(&spec.queue, &spec.task_type)?;
    let tenant = &caller.tenant;
    let mut answers = app.engine.submit(tenant, vec![spec]).await?;
    let mut accepted = answers.pop().expect("the engine answers every spec")?;
    if let Some(wait) = wait {
        await_outcome(&app, tenant, &mut accepted, wait).await;
    }
    render(&app, accepted).await
}

/// Waits for the outcome of a task that was taken. The task is durable: should it be out of reach
/// meanwhile, the answer shows it as it was taken.
async fn await_outcome(app: &App, tenant: &TenantName, accepted: &mut Accepted, wait: Duration) {
    match app.engine.wait(tenant, accepted.task.id, wait).await {
        Ok(Some(task)) => {
            accepted.unserved &= !task.status.is_terminal();
            accepted.task = task;
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, task.id = %accepted.task.id, "cannot wait for it"),
    }
}

async fn render(app: &App, accepted: Accepted) -> Result<Response, ApiError> {
    let Accepted { task, replayed, unserved } = accepted;
    let mut view = task_view(app, task).await?;
    if unserved {
        view.warnings.push(Warning {
            code: "NO_WORKER_FOR_TYPE".to_owned(),
            detail: format!(
                "no live worker has a handler for `{}`; the task waits until one starts",
                view.r#type
            ),
        });
    }
    let location = format!("/v1/tasks/{}", view.task_id);
    let body = serde_json::to_vec(&view).expect("a task can always be written as JSON");
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
    let location = HeaderValue::try_from(location).expect("an id fits a header");
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// The header `traceparent`, if it is valid.
pub(crate) fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut given = headers.get_all(TRACE_PARENT).iter();
    let value = given.next().filter(|_| given.next().is_none())?;
    TraceParent::parse(value.to_str().ok()?)
}

/// The key of the header: bare, or a quoted string with `\"` and `\\`.
pub(crate) fn header_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let key = text.and_then(unquote).ok_or_else(|| {
        let detail = "the header Idempotency-Key must be given once, in ASCII, bare or quoted";
        let error = FieldError::of("idempotencyKey", "INVALID_KEY", detail);
        ApiError::with_errors(Code::InvalidFields, detail, vec![error])
    })?;
    check_key(&key).map_err(|bad| ApiError::fields(vec![bad], 0))?;
    Ok(Some(key))
}

fn unquote(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else { return Some(text.to_owned()) };
    let mut key = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return characters.as_str().is_empty().then_some(key),
            '\\' => key.push(characters.next().filter(|next| matches!(next, '"' | '\\'))?),
            other => key.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_bare_or_quoted() {
        for (text, key) in [
            ("k-1", Some("k-1")),
            (r#""k 1""#, Some("k 1")),
            (r#""a\"b\\c""#, Some(r#"a"b\c"#)),
            (r#""open"#, None),
            (r#""a"b"#, None),
            (r#""a\n""#, None),
        ] {
            assert_eq!(unquote(text).as_deref(), key, "{text}");
        }
    }
}
