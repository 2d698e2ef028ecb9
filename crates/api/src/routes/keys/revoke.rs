//! `DELETE /keys/{id}`

use axum::Json;
use axum::extract::{Path, State};
use duly_client::wire::KeyView;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::KeyNotFound;
use crate::routes::PathId;

/// Revoke an API key
///
/// It is refused from now on, by every node within 5 seconds, and stays listed. That cannot be undone.
#[utoipa::path(
    delete, path = "/keys/{id}", operation_id = "revoke_key", tag = "keys",
    extensions(("x-duly-access" = json!(Access::Admin))),
    params(("id" = String, Path, description = "The key's id, which is not its secret")),
    responses(
        (status = 200, description = "The key, revoked", body = KeyView),
        KeyNotFound,
    ),
)]
pub(crate) async fn revoke_key(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
) -> Result<Json<KeyView>, ApiError> {
    let id = id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(absent)?;
    let revoked = app.acting(&caller).revoke_key(&caller.giver(), &caller.tenant, id).await?;
    Ok(Json(revoked.ok_or_else(absent)?.into()))
}

/// Answers alike for a key that does not exist and for another tenant's.
fn absent() -> ApiError {
    ApiError::new(Code::KeyNotFound, "there is no key with this id; see GET /keys")
}
