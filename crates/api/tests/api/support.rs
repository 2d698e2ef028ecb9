//! A router and short words for asking it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use duly_api::{Config, Tenants};
use duly_core::lease::{Finish, Outcome};
use duly_core::log::LogChunk;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{PauseQueue, Rules};
use duly_core::ports::work_source::WorkSource;
use duly_core::task::Failure;
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::memory::MemoryStore;
use http_body_util::BodyExt;
use tower::ServiceExt;

/// An engine over an empty store.
pub(crate) fn engine() -> Engine {
    let clock = Arc::new(SystemClock::default());
    let store = Arc::new(MemoryStore::new(clock, Rules::default()));
    Engine::start(store, Arc::new(OsRandom::new()), duly_engine::Config::default())
}

/// A router over an engine.
pub(crate) fn router_over(engine: &Engine) -> Router {
    duly_api::router(engine.clone(), Config::default())
}

/// Holds back what bulk actions do, as no caller can.
pub(crate) async fn pause_system(engine: &Engine) {
    let (tenant, queue) = (TenantName::default_tenant(), QueueName::system());
    let order = PauseQueue { tenant, queue, note: String::new() };
    assert!(engine.pause_queue(order).await.unwrap().is_some());
}

/// A router over an engine, for one tenant.
pub(crate) fn router_of(engine: &Engine, tenant: &str) -> Router {
    let tenants = Tenants::One(TenantName::new(tenant).unwrap());
    let config = Config { tenants, ..Config::default() };
    duly_api::router(engine.clone(), config)
}

/// A worker that does what a test says.
pub(crate) struct Hand(Arc<dyn WorkSource>);

impl Hand {
    pub(crate) async fn of(engine: &Engine, types: &[&str]) -> Self {
        let types = types.iter().map(|name| TypeName::new(name).unwrap()).collect();
        let worker = LocalWorker { name: "hand".to_owned(), types, queues: Vec::new() };
        Self(engine.open_worker(worker).await.unwrap())
    }

    /// Ends the next task so, and returns its id.
    pub(crate) async fn end(&self, outcome: Outcome, log: Option<&str>) -> String {
        let lease = self.0.claim(1).await.unwrap().pop().unwrap();
        let finish = Finish::new(lease.task, lease.epoch, outcome);
        let log = log.map(|text| LogChunk { offset: 0, text: text.into() });
        let finish = Finish { log, ..finish };
        self.0.finish(vec![finish]).await.unwrap();
        lease.task.to_string()
    }

    /// Fails the next task for good.
    pub(crate) async fn fail(&self, code: &str, message: &str) -> String {
        self.end(Outcome::Fail { error: Failure::new(code, message) }, None).await
    }
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

/// Method, path and description of every operation of the OpenAPI document.
pub(crate) fn operations() -> Vec<(Method, String, serde_json::Value)> {
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            operations.push((method, path.clone(), operation.clone()));
        }
    }
    operations
}
