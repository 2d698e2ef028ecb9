//! Sinks: who receives events.

use super::reader::Reader;
use axum::http::Method;

use crate::support::{ask, get, post, request, router};

#[tokio::test]
async fn the_stream_of_a_tenant_is_a_sink() {
    let router = router();
    assert_eq!(ask(&router, get("/sinks")).await.json()["items"], serde_json::json!([]));
    let _reader = Reader::open(&router, "topics=events").await;
    let listed = ask(&router, get("/sinks")).await.json();
    let sink = &listed["items"][0];
    assert_eq!((&sink["name"], &sink["lagRows"]), (&"duly.stream:default".into(), &0.into()));
    assert!(sink["windowSeconds"].as_f64().unwrap() >= 300.0, "{sink}");
    assert!(sink["suspended"].is_null() && sink["relay"].is_null(), "{sink}");
    let resumed = ask(&router, post("/sinks/duly.stream:default/resume", "{}")).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["name"]), (200, &sink["name"]));
    let remove = || request(Method::DELETE, "/sinks/duly.stream:default", &[]);
    assert_eq!(ask(&router, remove()).await.status, 204);
    assert_eq!(ask(&router, remove()).await.problem().1, "SINK_NOT_FOUND");
}

#[tokio::test]
async fn a_sink_that_does_not_exist_cannot_be_resumed() {
    let router = router();
    for name in ["kafka", "not%20a%20name", "%ff"] {
        let refused = ask(&router, post(&format!("/sinks/{name}/resume"), "{}")).await;
        assert_eq!(refused.problem().1, "SINK_NOT_FOUND", "{name}");
    }
}
