//! No query parameter is ignored, whatever the route.

use axum::http::Method;

use crate::support::{ask, get, operations, request, router};

#[tokio::test]
async fn an_unknown_parameter_is_refused_on_every_route() {
    let router = router();
    let operations = operations();
    assert!(operations.len() >= 30, "{}", operations.len());
    for (method, path, _) in operations {
        let path = path
            .replace("{id}", "01920000-0000-7000-8000-000000000000")
            .replace("{queue}", "default")
            .replace("{name}", "nightly");
        let unversioned = path.strip_prefix("/v1").unwrap_or(&path);
        for path in [path.as_str(), unversioned] {
            let headers = [("content-type", "application/json")];
            let asked = request(method.clone(), &format!("{path}?bogus=1"), &headers);
            let (status, code, _) = ask(&router, asked).await.problem();
            assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"), "{method} {path}");
        }
    }
    for path in ["/openapi.json", "/v1/openapi.json", "/v1/livez", "/v1/version"] {
        let (status, code, _) = ask(&router, get(&format!("{path}?bogus=1"))).await.problem();
        assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"), "{path}");
    }
    let head = ask(&router, request(Method::HEAD, "/livez?bogus=1", &[])).await;
    assert_eq!(head.status, 400);
}

#[tokio::test]
async fn a_parameter_of_another_route_is_unknown() {
    let router = router();
    for path in ["/tasks?wait=5s", "/tasks/batch?wait=5s", "/livez?verbose", "/v1/settings?limit=1"]
    {
        let answer = ask(&router, get(path)).await;
        // A path that has no such method says so first.
        let expected = if path.contains("batch") { 405 } else { 400 };
        assert_eq!(answer.status, expected, "{path}");
    }
    assert_eq!(ask(&router, get("/nowhere?bogus=1")).await.status, 404);
    assert_eq!(ask(&router, get("/tasks?")).await.status, 200);
}
