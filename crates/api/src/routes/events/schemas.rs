//! `GET /events/schemas`

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::access::Access;
use crate::event_schemas::event_schemas;

static SCHEMAS: LazyLock<Bytes> = LazyLock::new(|| event_schemas().to_string().into());

/// Read the schemas of events
///
/// A JSON Schema that every event of the full stream fits. Under `$defs` it has one by the type of each
/// event, such as `dev.duly.task.succeeded.v1`.
#[utoipa::path(
    get, path = "/events/schemas", operation_id = "read_event_schemas", tag = "events",
    extensions(("x-duly-access" = json!(Access::Public))),
    responses(
        (status = 200, description = "The schema", body = serde_json::Value, content_type = "application/json"),
    ),
)]
pub(crate) async fn read_event_schemas() -> Response {
    ([(CONTENT_TYPE, "application/json")], SCHEMAS.clone()).into_response()
}
