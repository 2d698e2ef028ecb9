//! `POST /auth/token`

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{Problem, TokenAnswer};
use duly_core::key::{ApiKey, KeyHash};
use duly_core::time::Timestamp;
use duly_engine::key_text::KeyText;

use super::{authenticator, no_signing_key};
use crate::access::Access;
use crate::app::App;
use crate::auth::{Authenticator, NewToken, admit};
use crate::caller::{Credentials, Identity};
use crate::error::{ApiError, Code};
use crate::{body, fields};

/// How long a token may be used that a key was exchanged for.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Exchange an API key for a token
///
/// Answers with a token for 15 minutes, so that a program need not send its key with every request. The
/// token is worth what the key is worth: it ends with it.
#[utoipa::path(
    post, path = "/auth/token", operation_id = "exchange_key", tag = "auth",
    extensions(("x-duly-access" = json!(Access::SignedIn))),
    responses(
        (status = 200, description = "The token", body = TokenAnswer),
        (status = 409, description = "`NO_SIGNING_KEY`", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "`KEY_REQUIRED`; `INVALID_FIELDS`: it takes none",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn exchange_key(
    State(app): State<App>,
    credentials: Credentials,
    request: Request,
) -> Result<Json<TokenAnswer>, ApiError> {
    let authenticator = authenticator(&app)?;
    let sent = admit::bearer(request.headers())?.and_then(KeyText::parse);
    let (Some(text), Identity::Key(key)) = (sent, &credentials.identity) else {
        let detail = "send an API key as `Authorization: Bearer …`; a token cannot be exchanged";
        return Err(ApiError::new(Code::KeyRequired, detail));
    };
    let hash = text.hash();
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let (token, expires_at) = sign(authenticator, key, hash, LIFETIME)?;
    Ok(Json(TokenAnswer { token, token_type: "Bearer".to_owned(), expires_at }))
}

/// A token that stands for a key.
pub(super) fn sign(
    authenticator: &Authenticator,
    key: &ApiKey,
    hash: KeyHash,
    lifetime: Duration,
) -> Result<(String, Timestamp), ApiError> {
    let signing = authenticator.signing().ok_or_else(no_signing_key)?;
    let new = NewToken {
        subject: format!("key:{}", key.id),
        grant: key.tenant.clone(),
        roles: key.roles,
        expires_in: lifetime,
        key: Some(hash),
    };
    Ok(signing.sign(new, authenticator.now()))
}
