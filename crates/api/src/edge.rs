//! The one layer around every route: request id, guard, sign-in, panics, problems and headers. Hand-written
//! as one function, since a submit takes less time than a stack of eight layers would.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::app::App;
use crate::auth::admit::admit;
use crate::error::{ApiError, Code};
use crate::request_id::RequestId;
use crate::{guard, request_id};

/// Nothing of an API answer may run, load or be framed.
const CSP: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
/// For a year, browsers use encryption alone.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// The viewer runs its own files and nothing inline; it sets styles and shows embedded images.
const DOCS_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// Answers one request, whatever happens inside.
pub(crate) async fn around(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = app.request_ids.of(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let is_docs = request.uri().path().starts_with("/docs");
    let response = match check(&app, &mut request).await {
        Err(refused) => refused.into_response(),
        Ok(()) => contain(next.run(request)).await,
    };
    let mut response = finish(response, id, is_docs);
    if app.config.tls.is_some() {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS);
    }
    response
}

/// Refuses what no route should see. A caller who may not call a route learns nothing of its query.
async fn check(app: &App, request: &mut Request) -> Result<(), ApiError> {
    let (method, uri) = (request.method(), request.uri());
    guard::check(&app.config.allowed_hosts, method, uri, request.headers())?;
    let Some(path) = request.extensions().get::<MatchedPath>() else { return Ok(()) };
    let Some(route) = app.routes.find(method, path.as_str())? else { return Ok(()) };
    admit(app, request, route.access()).await?;
    route.check_query(request.uri())
}

/// Turns a panic into an answer: one broken request must not cost the connection its others.
async fn contain(answering: impl Future<Output = Response>) -> Response {
    let answered = AssertUnwindSafe(answering).catch_unwind().await;
    answered.unwrap_or_else(|panic| ApiError::internal(words(&*panic)).into_response())
}

fn finish(mut response: Response, id: HeaderValue, is_docs: bool) -> Response {
    let status = response.status();
    let mut refused = response.extensions_mut().remove::<ApiError>();
    if refused.is_none() && status == StatusCode::NOT_FOUND {
        // The viewer's files are served by a library, which has its own way to say this.
        refused = Some(not_found());
    }
    if let Some(refused) = refused {
        refused.render(&mut response, id.to_str().expect("an id is plain ASCII"));
    }
    let headers = response.headers_mut();
    headers.insert(request_id::HEADER, id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CONTENT_SECURITY_POLICY, if is_docs { DOCS_CSP } else { CSP });
    if !is_docs {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// The answer to a path that leads nowhere.
pub(crate) fn not_found() -> ApiError {
    ApiError::new(Code::NotFound, "there is nothing at this path; /docs lists what there is")
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a handler panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_answers_500_and_says_nothing_internal() {
        let response = contain(async { panic!("secret {}", 7) }).await;
        let response = finish(response, HeaderValue::from_static("id-1"), false);
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()["x-request-id"], "id-1");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let problem: duly_client::wire::Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.code, "INTERNAL");
        assert_eq!(problem.request_id.as_deref(), Some("id-1"));
        assert!(!problem.detail.contains("secret"), "{}", problem.detail);
    }
}
