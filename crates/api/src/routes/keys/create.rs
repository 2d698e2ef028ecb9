//! `POST /keys`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use duly_client::wire::{CreatedKeyView, KeyRequest, Problem};
use duly_core::limits::BODY_BYTES;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::{body, key_fields};

/// Create an API key
///
/// The answer has its secret, which nobody can read again: send it as `Authorization: Bearer …`. You can
/// give only roles that you hold yourself, for tenants that you hold them for.
#[utoipa::path(
    post, path = "/keys", operation_id = "create_key", tag = "keys",
    extensions(("x-duly-access" = json!(Access::Admin))),
    request_body(content = KeyRequest),
    responses(
        (status = 201, description = "The key, with its secret", body = CreatedKeyView),
        (status = 403, description = "`FORBIDDEN`: the key would allow more than you may do; \
            `FOREIGN_HOST`, `CROSS_SITE`", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "`BODY_TOO_LARGE`; `TOO_LARGE`: the tenant has 10,000 keys",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn create_key(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<CreatedKeyView>), ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let order = key_fields::order(&body.bytes, &caller.tenant)?;
    let created = app.acting(&caller).create_key(&caller.giver(), order).await?;
    let secret = created.text.reveal().to_owned();
    Ok((StatusCode::CREATED, Json(CreatedKeyView { key: created.key.into(), secret })))
}
