//! `POST /tasks/batch`

use std::io::Write as _;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use duly_client::wire::{BatchAnswer, Problem, SubmitRequest};
use duly_core::limits::BATCH_BYTES;
use duly_core::submit::Spec;
use duly_engine::command::submit::{Accepted, Refused};

use super::submit::{IDEMPOTENCY_KEY, trace};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{QuotaExceeded, TenantSuspended};
use crate::{body, query};

mod items;

use items::Items;

/// Items read before other requests get their turn.
const TURN: usize = 256;

/// How a batch is written; the answer is written the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One JSON array.
    Array,
    /// One JSON object per line.
    Lines(&'static str),
}

/// Submit many tasks
///
/// Each item is taken or refused by itself. Idempotency keys are given item by item, in the field
/// `idempotencyKey`. With NDJSON (`application/x-ndjson`) each line is an item, and each line of
/// the answer is one of its items.
#[utoipa::path(
    post, path = "/tasks/batch", operation_id = "submit_batch", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Submitter))),
    request_body(description = "At most 10,000 items and 32 MiB", content(
        (Vec<SubmitRequest> = "application/json",
            example = json!([{"type": "echo", "payload": {"to": "ada@example.com"}},
                {"type": "echo", "payload": {"to": "alan@example.com"}, "delaySeconds": 60}])),
        (String = "application/x-ndjson",
            example = json!("{\"type\":\"echo\"}\n{\"type\":\"echo\",\"delaySeconds\":60}\n")),
    )),
    responses(
        (status = 201, description = "All items were taken", content(
            (BatchAnswer = "application/json"), (String = "application/x-ndjson"))),
        (status = 207, description = "Some items were refused; each says why", content(
            (BatchAnswer = "application/json"), (String = "application/x-ndjson"))),
        (status = 400, description = "`MALFORMED_JSON`, `INCOMPLETE_BODY`, `INVALID_PARAMETER`; \
            nothing was stored", body = Problem, content_type = "application/problem+json"),
        TenantSuspended,
        QuotaExceeded,
        (status = 413, description = "`BODY_TOO_LARGE`, `TOO_MANY_ITEMS`; nothing was stored",
            body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "`INVALID_FIELDS`: the body is no array", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn submit_batch(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let format = format(body::media_type(&head.headers)?)?;
    if head.headers.contains_key(IDEMPOTENCY_KEY) {
        let detail = "the header Idempotency-Key is for single tasks; give each item of a batch \
                      its own field idempotencyKey";
        return Err(query::invalid(detail));
    }
    let body = body::read(&app, &head.headers, body, BATCH_BYTES).await?;
    let (mut specs, refusals) =
        read(&body.bytes, format, |spec| caller.check_scope(&spec.queue, &spec.task_type)).await?;
    drop(body);
    let trace = trace(&head.headers);
    for spec in &mut specs {
        spec.trace.clone_from(&trace);
    }
    let answers = if specs.is_empty() {
        Vec::new()
    } else {
        app.engine.submit(&caller.tenant, specs).await?
    };
    Ok(render(format, refusals, answers))
}

fn format(media_type: &str) -> Result<Format, ApiError> {
    let is = |name: &str| media_type.eq_ignore_ascii_case(name);
    if is("application/json") {
        Ok(Format::Array)
    } else if is("application/x-ndjson") {
        Ok(Format::Lines("application/x-ndjson"))
    } else if is("application/ndjson") {
        Ok(Format::Lines("application/ndjson"))
    } else {
        Err(body::unsupported(
            "send a JSON array with Content-Type: application/json, or one task per line with \
             application/x-ndjson",
        ))
    }
}

/// The specs of the items that are valid, and for each item why it is not.
async fn read(
    body: &[u8],
    format: Format,
    check: impl Fn(&Spec) -> Result<(), ApiError>,
) -> Result<(Vec<Spec>, Vec<Option<ApiError>>), ApiError> {
    let items = match format {
        Format::Array => Items::of_array(body)?,
        Format::Lines(_) => Items::of_lines(body)?,
    };
    let mut specs = Vec::with_capacity(items.len());
    let mut refusals = Vec::with_capacity(items.len());
    for at in 0..items.len() {
        if at % TURN == TURN - 1 {
            tokio::task::yield_now().await;
        }
        match items.read(at).and_then(|spec| check(&spec).map(|()| spec)) {
            Ok(spec) => {
                specs.push(spec);
                refusals.push(None);
            }
            Err(refused) => refusals.push(Some(refused)),
        }
    }
    Ok((specs, refusals))
}

fn render(
    format: Format,
    refusals: Vec<Option<ApiError>>,
    answers: Vec<Result<Accepted, Refused>>,
) -> Response {
    let (open, between, close, media_type) = match format {
        Format::Array => ("{\"items\":[", ",", "]}", "application/json"),
        Format::Lines(media_type) => ("", "\n", "\n", media_type),
    };
    let mut answers = answers.into_iter();
    let mut buffer = Vec::with_capacity(refusals.len() * 96 + 16);
    let mut all_taken = true;
    let is_empty = refusals.is_empty();
    buffer.extend_from_slice(open.as_bytes());
    for (index, refused) in refusals.into_iter().enumerate() {
        if index > 0 {
            buffer.extend_from_slice(between.as_bytes());
        }
        let answer = match refused {
            Some(refused) => Err(refused),
            None => answers.next().expect("the engine answers every spec").map_err(ApiError::from),
        };
        all_taken &= answer.is_ok();
        write_item(&mut buffer, index, answer);
    }
    if !(is_empty && matches!(format, Format::Lines(_))) {
        buffer.extend_from_slice(close.as_bytes());
    }
    let mut response = Response::new(buffer.into());
    let status = if all_taken { StatusCode::CREATED } else { StatusCode::MULTI_STATUS };
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn write_item(buffer: &mut Vec<u8>, index: usize, answer: Result<Accepted, ApiError>) {
    let done = match answer {
        Ok(Accepted { task, replayed, .. }) => {
            let (id, status) = (task.id, task.status.as_str());
            let replayed = if replayed { r#","replayed":true"# } else { "" };
            write!(buffer, r#"{{"index":{index},"taskId":"{id}","status":"{status}"{replayed}}}"#)
        }
        Err(refused) => write!(buffer, r#"{{"index":{index},"problem":"#).and_then(|()| {
            serde_json::to_writer(&mut *buffer, &refused.problem(None))?;
            buffer.write_all(b"}")
        }),
    };
    done.expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests;
