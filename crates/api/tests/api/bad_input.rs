//! Every way to ask wrongly: status, code and pointer.

use axum::body::Body;
use axum::http::Method;
use duly_core::limits::{BATCH_BYTES, BODY_BYTES, PAYLOAD_BYTES};

use crate::support::{ask, get, post, post_as, request, router};

async fn refuses(request: axum::http::Request<Body>, status: u16, code: &str, errors: &[&str]) {
    let about = format!("{} {}", request.method(), request.uri());
    let answer = ask(&router(), request).await;
    let (found_status, found_code, found_errors) = answer.problem();
    assert_eq!((found_status, found_code.as_str()), (status, code), "{about}: {answer:?}");
    assert_eq!(found_errors, errors, "{about}");
}

#[tokio::test]
async fn bodies_of_another_type() {
    for path in ["/tasks", "/v1/tasks", "/tasks/batch"] {
        for content_type in ["text/plain", "", "application/jsonx", "multipart/form-data", "json"] {
            let request = post_as(path, content_type, r#"{"type":"a"}"#);
            refuses(request, 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
        }
        let absent = request(Method::POST, path, &[]);
        refuses(absent, 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        refuses(request(Method::POST, path, &headers), 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
    }
    refuses(post_as("/tasks", "application/x-ndjson", "{}"), 415, "UNSUPPORTED_MEDIA_TYPE", &[])
        .await;
    for content_type in ["application/json;charset=utf-8", "APPLICATION/JSON ; x=y"] {
        refuses(post_as("/tasks", content_type, "{}"), 422, "INVALID_FIELDS", &["/type REQUIRED"])
            .await;
    }
}

#[tokio::test]
async fn bodies_that_are_no_json() {
    let bad: [&[u8]; 7] =
        [b"", b"{", b"{\"type\":\"a\"}}", b"nul", b"{\"a\":\"\xff\"}", b"\0", b"{'type':'a'}"];
    for body in bad {
        for path in ["/tasks", "/v1/tasks/batch"] {
            refuses(post(path, body.to_vec()), 400, "MALFORMED_JSON", &[]).await;
        }
    }
}

#[tokio::test]
async fn bodies_that_are_no_task() {
    for body in ["[]", "7", "null", "\"a\""] {
        refuses(post("/tasks", body), 422, "INVALID_FIELDS", &[" WRONG_TYPE"]).await;
    }
    for body in ["{}", "7", "null", r#"{"items":[]}"#] {
        refuses(post("/tasks/batch", body), 422, "INVALID_FIELDS", &[" WRONG_TYPE"]).await;
    }
    for (body, code, errors) in [
        ("{}", "INVALID_FIELDS", "/type REQUIRED"),
        (r#"{"type":"a b"}"#, "INVALID_FIELDS", "/type INVALID_NAME"),
        (r#"{"type":"Duly.bulk"}"#, "INVALID_FIELDS", "/type INVALID_NAME"),
        (r#"{"type":"' or 1=1 --"}"#, "INVALID_FIELDS", "/type INVALID_NAME"),
        (r#"{"type":"a","tenantId":"x"}"#, "INVALID_FIELDS", "/tenantId UNKNOWN_FIELD"),
        (r#"{"type":"a","priority":"5"}"#, "INVALID_FIELDS", "/priority WRONG_TYPE"),
        (r#"{"type":"a","priority":1e400}"#, "INVALID_FIELDS", "/priority OUT_OF_RANGE"),
        (r#"{"type":"a","type":"a"}"#, "INVALID_FIELDS", "/type DUPLICATE_FIELD"),
        (r#"{"type":"a","runAt":"x"}"#, "INVALID_FIELDS", "/runAt INVALID_TIME"),
        (r#"{"type":"a","delaySeconds":-1}"#, "INVALID_FIELDS", "/delaySeconds OUT_OF_RANGE"),
        (r#"{"type":"a","notify":{}}"#, "UNSUPPORTED_FIELD", "/notify UNSUPPORTED_FIELD"),
    ] {
        refuses(post("/tasks", body), 422, code, &[errors]).await;
    }
}

#[tokio::test]
async fn s18_bodies_that_are_too_large() {
    let spaces = |count| vec![b' '; count];
    refuses(post("/tasks", spaces(BODY_BYTES + 1)), 413, "BODY_TOO_LARGE", &[]).await;
    refuses(post("/tasks", spaces(BODY_BYTES)), 400, "MALFORMED_JSON", &[]).await;
    refuses(post("/tasks/batch", spaces(BATCH_BYTES + 1)), 413, "BODY_TOO_LARGE", &[]).await;
    let payload = format!(r#"{{"type":"a","payload":"{}"}}"#, "x".repeat(PAYLOAD_BYTES));
    refuses(post("/tasks", payload), 413, "PAYLOAD_TOO_LARGE", &["/payload PAYLOAD_TOO_LARGE"])
        .await;
    let items = format!("[{}]", vec![r#"{"type":"a"}"#; 10_001].join(","));
    refuses(post("/tasks/batch", items), 413, "TOO_MANY_ITEMS", &[]).await;
}

#[tokio::test]
async fn s18_chunked_bodies_have_the_same_limit() {
    let chunks = (0..40).map(|_| Ok::<_, std::io::Error>(vec![b' '; 32 * 1024]));
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    refuses(post("/tasks", body), 413, "BODY_TOO_LARGE", &[]).await;
}

#[tokio::test]
async fn bodies_that_break_off() {
    let chunks = [Ok(vec![b'{']), Err(std::io::Error::other("gone"))];
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    refuses(post("/tasks", body), 400, "INCOMPLETE_BODY", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_never_end() {
    let never = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    refuses(post("/tasks", Body::from_stream(never)), 408, "BODY_TIMEOUT", &[]).await;
}

#[tokio::test]
async fn bad_idempotency_keys() {
    let to = |path: &str, key: &str, body: &'static str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        request(Method::POST, path, &headers).map(|_| Body::from(body))
    };
    let with = |key: &str, body: &'static str| to("/tasks", key, body);
    let bad = ["/idempotencyKey INVALID_KEY"];
    for key in ["", "\"", "\"a", "\"a\"b", "\"\"", "é", "a\tb", &"k".repeat(256)] {
        refuses(with(key, r#"{"type":"a"}"#), 422, "INVALID_FIELDS", &bad).await;
        for order in
            [r#"{"action":"cancel","all":true}"#, r#"{"action":"cancel","all":true,"dryRun":true}"#]
        {
            refuses(to("/bulk-actions", key, order), 422, "INVALID_FIELDS", &bad).await;
        }
    }
    let conflict = ["/idempotencyKey CONFLICTING_FIELDS"];
    let body = r#"{"type":"a","idempotencyKey":"b"}"#;
    refuses(with("a", body), 422, "CONFLICTING_FIELDS", &conflict).await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "a")];
    let batch = request(Method::POST, "/tasks/batch", &headers);
    refuses(batch, 400, "INVALID_PARAMETER", &[]).await;
}

#[tokio::test]
async fn parameters_that_cannot_be() {
    const ID: &str = "/tasks/01920000-0000-7000-8000-000000000000";
    for query in ["wait=", "wait=30", "wait=-1s", "wait=61s", "wait=1s&wait=1s", "x=1", "Wait=1s"] {
        refuses(get(&format!("{ID}?{query}")), 400, "INVALID_PARAMETER", &[]).await;
    }
    for query in ["limit=0", "limit=201", "limit=x", "limit=-1", "limit=1.5", "limit=", "status=X"]
    {
        refuses(get(&format!("/tasks?{query}")), 400, "INVALID_PARAMETER", &[]).await;
    }
    for cursor in ["x", "", "AAAA", "%27%20or%201%3D1", "%ff%fe"] {
        refuses(get(&format!("/v1/tasks?cursor={cursor}")), 400, "INVALID_CURSOR", &[]).await;
    }
    refuses(get("/readyz?x"), 400, "INVALID_PARAMETER", &[]).await;
}

#[tokio::test]
async fn ids_that_cannot_be() {
    for id in ["1", "x", "%ff", "01920000000070008000000000000000", "..%2f..%2fetc", "null"] {
        refuses(get(&format!("/tasks/{id}")), 404, "TASK_NOT_FOUND", &[]).await;
        refuses(get(&format!("/v1/tasks/{id}?wait=1s")), 404, "TASK_NOT_FOUND", &[]).await;
    }
}

#[tokio::test]
async fn headers_that_are_given_twice() {
    let json = ("content-type", "application/json");
    let send = |headers: &[(&str, &str)]| {
        request(Method::POST, "/tasks", headers).map(|_| Body::from(r#"{"type":"a"}"#))
    };
    let types = [json, ("content-type", "text/plain")];
    refuses(send(&types), 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
    refuses(send(&[json, json]), 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
    let encodings = [json, ("content-encoding", "identity"), ("content-encoding", "gzip")];
    refuses(send(&encodings), 415, "UNSUPPORTED_MEDIA_TYPE", &[]).await;
    let keys = [json, ("idempotency-key", "a"), ("idempotency-key", "a")];
    let bad = ["/idempotencyKey INVALID_KEY"];
    refuses(send(&keys), 422, "INVALID_FIELDS", &bad).await;
    let origins = [json, ("origin", "http://localhost:8080"), ("origin", "http://evil.example")];
    refuses(send(&origins), 403, "CROSS_SITE", &[]).await;
    let hosts = [json, ("host", "localhost"), ("host", "localhost")];
    refuses(send(&hosts), 400, "MISSING_HOST", &[]).await;
    let ids = [("x-request-id", "one"), ("x-request-id", "two")];
    let answer = ask(&router(), request(Method::GET, "/livez", &ids)).await;
    assert!(!["one", "two"].contains(&answer.headers["x-request-id"].to_str().unwrap()));
}

#[tokio::test]
async fn times_that_are_no_rfc_3339() {
    for time in [
        "2030-01-31T08:00:00+24:00",
        "2030-01-31T08:00:00,5Z",
        "2030-01-31T08:00:00Z[Europe/Berlin]",
        "2030-01-31T08:00Z",
    ] {
        let body = format!(r#"{{"type":"a","runAt":"{time}"}}"#);
        refuses(post("/tasks", body), 422, "INVALID_FIELDS", &["/runAt INVALID_TIME"]).await;
    }
    for time in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-23:59"] {
        let body = format!(r#"{{"type":"a","runAt":"{time}"}}"#);
        refuses(post("/tasks", body), 422, "INVALID_FIELDS", &["/runAt OUT_OF_RANGE"]).await;
    }
}
