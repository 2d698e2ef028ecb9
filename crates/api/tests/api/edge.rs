//! What every answer has, and who is turned away before a route is looked for.

use axum::http::Method;

use crate::support::{ask, get, post, request, router};

#[tokio::test]
async fn unknown_paths_and_methods() {
    for path in ["/nope", "/v1", "/v2/tasks", "/tasks/", "/tasks/a/b", "/docs/nope.js", "/metrics"]
    {
        let (status, code, _) = ask(&router(), get(path)).await.problem();
        assert_eq!((status, code.as_str()), (404, "NOT_FOUND"), "{path}");
    }
    for (method, path, allow) in [
        (Method::DELETE, "/tasks", "POST"),
        (Method::OPTIONS, "/v1/tasks", "GET"),
        (Method::GET, "/tasks/batch/x", ""),
        (Method::PUT, "/tasks/batch", "POST"),
        (Method::POST, "/livez", "GET"),
        (Method::POST, "/openapi.json", "GET"),
        (Method::POST, "/", "GET"),
    ] {
        let answer = ask(&router(), request(method, path, &[])).await;
        let (status, code, _) = answer.problem();
        if allow.is_empty() {
            assert_eq!((status, code.as_str()), (404, "NOT_FOUND"), "{path}");
        } else {
            assert_eq!((status, code.as_str()), (405, "METHOD_NOT_ALLOWED"), "{path}");
            assert!(answer.headers["allow"].to_str().unwrap().contains(allow), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn s25_every_answer_has_the_same_headers() {
    for asked in [get("/livez"), get("/nope"), post("/tasks", "{"), get("/tasks/x"), get("/")] {
        let path = asked.uri().clone();
        let answer = ask(&router(), asked).await;
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        let csp = &answer.headers["content-security-policy"];
        assert_eq!(csp, "default-src 'none'; frame-ancestors 'none'", "{path}");
        assert!(answer.headers.contains_key("x-request-id"), "{path}");
    }
}

#[tokio::test]
async fn the_callers_request_id_comes_back() {
    let with = |id: &str| request(Method::GET, "/nope", &[("x-request-id", id)]);
    let answer = ask(&router(), with("abc-1.2_3")).await;
    assert_eq!(answer.json()["requestId"], "abc-1.2_3");
    let answer = ask(&router(), with("<script>")).await;
    assert_eq!(answer.json()["requestId"], "00000000-1");
}

#[tokio::test]
async fn s25_foreign_hosts_and_other_sites_are_turned_away() {
    for (headers, status, code) in [
        ([("host", "evil.example"), ("x-a", "")], 403, "FOREIGN_HOST"),
        ([("host", "rebound.example:8080"), ("x-a", "")], 403, "FOREIGN_HOST"),
        ([("host", ""), ("x-a", "")], 400, "MISSING_HOST"),
        ([("host", "localhost:8080"), ("sec-fetch-site", "cross-site")], 403, "CROSS_SITE"),
        ([("host", "localhost:8080"), ("origin", "null")], 403, "CROSS_SITE"),
        ([("host", "localhost:8080"), ("origin", "http://evil.example")], 403, "CROSS_SITE"),
    ] {
        let answer = ask(&router(), request(Method::POST, "/tasks", &headers)).await;
        let (found_status, found_code, _) = answer.problem();
        assert_eq!((found_status, found_code.as_str()), (status, code), "{headers:?}");
        let cors = |name: &str| name.starts_with("access-control-");
        assert!(!answer.headers.keys().any(|name| cors(name.as_str())));
    }
}

#[tokio::test]
async fn a_head_request_has_the_headers_and_no_body() {
    let answer = ask(&router(), request(Method::HEAD, "/livez", &[])).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-length"], "17");
    assert!(answer.body.is_empty());
}
