//! What the server says of itself: `/livez`, `/readyz`, `/version`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use duly_client::wire::health::Check;
use duly_client::wire::{Liveness, Readiness, Version};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::query;

/// How long the store may take to answer before the server counts as not ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_liveness))
        .routes(routes!(get_readiness))
        .routes(routes!(get_version))
}

/// Ask whether the process answers
///
/// Needs nothing but the process itself: restart the server if this fails.
#[utoipa::path(
    get, path = "/livez", operation_id = "get_liveness", tag = "health",
    extensions(("x-duly-access" = json!(Access::Public))),
    responses((status = 200, description = "It does", body = Liveness)),
)]
pub(crate) async fn get_liveness() -> Json<Liveness> {
    Json(Liveness { status: "live".to_owned() })
}

/// Ask whether the server should get requests
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "health",
    extensions(("x-duly-access" = json!(Access::Public))),
    params(("verbose" = Option<String>, Query, description = "Show each check by itself")),
    responses(
        (status = 200, description = "It should", body = Readiness),
        (status = 503, description = "It should not; `reasons` says why", body = Readiness,
            headers(("Retry-After" = u16, description = "Seconds"))),
    ),
)]
pub(crate) async fn get_readiness(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let [verbose] = query::read(&uri, ["verbose"])?;
    let mut reasons = Vec::new();
    let is_open = !app.engine.is_closing();
    if !is_open {
        reasons.push("the server is shutting down".to_owned());
    }
    let store = check_store(&app).await;
    let is_stored = store.is_none();
    reasons.extend(store);
    let is_ready = reasons.is_empty();
    let check = |name: &str, ok| Check { name: name.to_owned(), ok };
    let checks = verbose.map(|_| vec![check("open", is_open), check("store", is_stored)]);
    let body = Json(Readiness {
        status: if is_ready { "ready" } else { "notReady" }.to_owned(),
        reasons,
        checks: checks.unwrap_or_default(),
    });
    if is_ready {
        return Ok(body.into_response());
    }
    let retry = [(RETRY_AFTER, HeaderValue::from_static("1"))];
    Ok((StatusCode::SERVICE_UNAVAILABLE, retry, body).into_response())
}

/// Ask which server this is
#[utoipa::path(
    get, path = "/version", operation_id = "get_version", tag = "health",
    extensions(("x-duly-access" = json!(Access::Public))),
    responses((status = 200, description = "This one", body = Version)),
)]
pub(crate) async fn get_version() -> Json<Version> {
    Json(Version {
        name: "duly".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: "v1".to_owned(),
    })
}

/// Why the store takes no writes and for how long, in words that may leave the server.
async fn check_store(app: &App) -> Option<String> {
    let reason = match tokio::time::timeout(PATIENCE, app.engine.check()).await {
        Ok(Ok(())) => return None,
        Ok(Err(error)) if error.is_retryable() => error.to_string(),
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the store failed its check");
            "the store failed; the server's log says why".to_owned()
        }
        Err(_) => {
            app.engine.note_check_timeout();
            format!("the store did not answer within {} s; see its load", PATIENCE.as_secs())
        }
    };
    Some(format!("{reason}; seen for {} s", app.engine.unavailable_for().as_secs()))
}
