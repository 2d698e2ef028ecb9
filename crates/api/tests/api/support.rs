//! A router and short words for asking it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use duly_api::Config;
use duly_engine::Engine;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::memory::MemoryStore;
use http_body_util::BodyExt;
use tower::ServiceExt;

/// An engine over an empty store.
pub(crate) fn engine() -> Engine {
    let clock = Arc::new(SystemClock::default());
    Engine::start(Arc::new(MemoryStore::new(clock)), Arc::new(OsRandom::new()))
}

/// A router over an engine.
pub(crate) fn router_over(engine: &Engine) -> Router {
    duly_api::router(engine.clone(), Config::default())
}

/// A router over an empty store.
pub(crate) fn router() -> Router {
    router_over(&engine())
}

/// A request to localhost.
pub(crate) fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost:8080");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// A GET of localhost.
pub(crate) fn get(path: &str) -> Request<Body> {
    request(Method::GET, path, &[])
}

/// A POST of JSON to localhost.
pub(crate) fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    post_as(path, "application/json", body)
}

/// A POST to localhost.
pub(crate) fn post_as(path: &str, content_type: &str, body: impl Into<Body>) -> Request<Body> {
    request(Method::POST, path, &[("content-type", content_type)]).map(|_| body.into())
}

/// An answer whose body was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|bad| panic!("{bad}: {self:?}"))
    }

    /// Status, code and pointers of a problem; checks what every problem has.
    pub(crate) fn problem(&self) -> (u16, String, Vec<String>) {
        let problem: duly_client::wire::Problem =
            serde_json::from_slice(&self.body).unwrap_or_else(|bad| panic!("{bad}: {self:?}"));
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(problem.status, self.status.as_u16());
        assert_eq!(problem.r#type, format!("urn:duly:error:{}", problem.code));
        assert_eq!(problem.request_id.unwrap(), self.headers["x-request-id"]);
        assert!(!problem.detail.is_empty());
        let errors = problem.errors.into_iter();
        let errors = errors.map(|error| format!("{} {}", error.pointer, error.code)).collect();
        (problem.status, problem.code, errors)
    }
}

/// Asks the router.
pub(crate) async fn ask(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Answer { status: head.status, headers: head.headers, body }
}
