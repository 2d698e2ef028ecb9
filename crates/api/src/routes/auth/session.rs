//! `POST /auth/session` and `DELETE /auth/session`: the cookie of a browser.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use duly_client::wire::Problem;
use duly_engine::key_text::KeyText;

use super::authenticator;
use super::token::sign;
use crate::access::Access;
use crate::app::App;
use crate::auth::admit::{self, COOKIE_NAME};
use crate::caller::{Credentials, Identity};
use crate::error::ApiError;
use crate::peer::{ConnectedFrom, is_encrypted};
use crate::{body, fields};

/// How long a browser stays signed in with a key.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Sign a browser in
///
/// Exchanges a token or an API key for a cookie that scripts cannot read and other sites cannot use. A
/// write with the cookie needs the header `Origin`. It ends with the token or key, and after 12 hours
/// at the latest for a key.
#[utoipa::path(
    post, path = "/auth/session", operation_id = "begin_session", tag = "auth",
    extensions(("x-duly-access" = json!(Access::SignedIn))),
    responses(
        (status = 204, description = "The cookie is set", headers(
            ("Set-Cookie" = String, description = "The cookie"))),
        (status = 409, description = "`NO_SIGNING_KEY`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn begin_session(
    State(app): State<App>,
    credentials: Credentials,
    request: Request,
) -> Result<Response, ApiError> {
    let authenticator = authenticator(&app)?;
    let is_secure = is_secure(&app, &request);
    let sent = admit::bearer(request.headers())?.ok_or_else(ApiError::unauthenticated)?;
    let (token, seconds) = match (KeyText::parse(sent), &credentials.identity) {
        (Some(text), Identity::Key(key)) => {
            (sign(authenticator, key, text.hash(), LIFETIME)?.0, LIFETIME.as_secs())
        }
        _ => {
            let token = authenticator.check(sent).await;
            let token = token.ok_or_else(ApiError::unauthenticated)?;
            (sent.to_owned(), token.seconds_left(authenticator.now()))
        }
    };
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    Ok(answer(&token, seconds, is_secure))
}

/// Sign a browser out
///
/// Removes the cookie. The token or key itself stays valid.
#[utoipa::path(
    delete, path = "/auth/session", operation_id = "finish_session", tag = "auth",
    extensions(("x-duly-access" = json!(Access::Public))),
    responses(
        (status = 204, description = "The cookie is gone", headers(
            ("Set-Cookie" = String, description = "The cookie, expired"))),
    ),
)]
pub(crate) async fn finish_session(State(app): State<App>, request: Request) -> Response {
    answer("", 0, is_secure(&app, &request))
}

fn is_secure(app: &App, request: &Request) -> bool {
    let connected = request.extensions().get().map(|ConnectedFrom(address)| *address);
    is_encrypted(&app.config, connected, request.headers())
}

fn answer(token: &str, seconds: u64, is_secure: bool) -> Response {
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE_NAME}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let cookie = HeaderValue::try_from(cookie).expect("a token is plain ASCII");
    (StatusCode::NO_CONTENT, HeaderMap::from_iter([(SET_COOKIE, cookie)])).into_response()
}
