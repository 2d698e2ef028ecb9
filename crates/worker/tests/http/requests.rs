//! What a task asks for, and what becomes of the answer.

use duly_worker::{Handler, HandlerError};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::support::{
    self, NO_CONTENT, Server, assert_invalid, code, context, exchange, loopback, run,
};

#[tokio::test]
async fn a_request_names_its_task() {
    let payload = json!({"headers": {"X-One": "1", "traceparent": "00-a-b-01"}});
    let (request, result) = exchange(payload, NO_CONTENT).await;
    let id = context(&json!({})).task();
    assert!(request.starts_with("GET /path?q=1 HTTP/1.1\r\n"), "{request}");
    for header in [
        format!("duly-task-id: {id}"),
        "duly-epoch: 5".to_owned(),
        "duly-attempt: 3".to_owned(),
        format!("idempotency-key: {id}-2"),
        format!("user-agent: duly/{}", env!("CARGO_PKG_VERSION")),
        "x-one: 1".to_owned(),
        "traceparent: 00-a-b-01".to_owned(),
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
    }
    let empty = json!({"status": 204, "headers": {}, "body": "", "truncated": false});
    assert_eq!(result.unwrap(), empty);
}

#[tokio::test]
async fn a_body_is_sent_as_it_is_spelled() {
    let (request, _) = exchange(json!({"body": {"b": 1, "a": [2]}}), NO_CONTENT).await;
    assert!(request.starts_with("POST "), "{request}");
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
    assert!(request.ends_with(r#"{"a":[2],"b":1}"#), "{request}");

    let (request, _) = exchange(json!({"body": "plain\ntext", "method": "put"}), NO_CONTENT).await;
    assert!(request.starts_with("PUT "), "{request}");
    assert!(!request.contains("content-type"), "{request}");
    assert!(request.ends_with("\r\n\r\nplain\ntext"), "{request}");

    let typed = json!({"body": [1], "headers": {"Content-Type": "application/x"}});
    let (request, _) = exchange(typed, NO_CONTENT).await;
    assert!(request.contains("content-type: application/x\r\n"), "{request}");
    assert!(!request.contains("application/json"), "{request}");
}

#[tokio::test]
async fn an_answer_becomes_the_result() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=b\r\n\
                  Content-Length: 8\r\n\r\nhi\0there";
    let (_, result) = exchange(json!({}), answer).await;
    let headers = json!({"content-type": "text/plain"});
    let expected = json!({
        "status": 200, "headers": headers, "body": "hi\u{fffd}there", "truncated": false
    });
    assert_eq!(result.unwrap(), expected);
}

#[tokio::test]
async fn a_large_body_is_cut() {
    const KEPT: usize = 64 * 1024;
    for (sent, truncated) in [(KEPT, false), (KEPT + 1, true), (4 * 1024 * 1024, true)] {
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {sent}\r\n\r\n{}", "x".repeat(sent));
        let (_, result) = exchange(json!({}), &answer).await;
        let result = result.unwrap();
        assert_eq!(result["body"].as_str().unwrap().len(), KEPT, "{sent}");
        assert_eq!(result["truncated"], truncated, "{sent}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "ä".repeat(KEPT));
    let (_, result) = exchange(json!({}), &endless).await;
    assert_eq!(result.unwrap()["body"], "ä".repeat(KEPT / 2));
}

#[tokio::test]
async fn a_status_decides_between_retry_and_failure() {
    for (status, decision) in [
        (301, "fail"),
        (400, "fail"),
        (404, "fail"),
        (408, "retry"),
        (409, "retry"),
        (422, "fail"),
        (425, "retry"),
        (429, "retry"),
        (500, "retry"),
        (503, "retry"),
    ] {
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 6\r\n\r\nreason");
        let (_, result) = exchange(json!({}), &answer).await;
        let (decided, code, message) = code(result);
        assert_eq!((decided, code.as_str()), (decision, "HTTP_STATUS"), "{status}");
        assert!(message.contains(&status.to_string()), "{message}");
        assert!(message.ends_with(": reason"), "{message}");
    }
}

#[tokio::test]
async fn a_target_that_asks_for_time_gets_it() {
    let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (headers, seconds) in [
        ("retry-after: 120\r\n".to_owned(), Some(120)),
        (format!("{date}retry-after: Sun, 06 Nov 1994 08:50:07 GMT\r\n"), Some(30)),
        (format!("{date}retry-after: Sun, 06 Nov 1994 08:00:00 GMT\r\n"), Some(0)),
        ("retry-after: soon\r\n".to_owned(), None),
        (String::new(), None),
    ] {
        let answer = format!("HTTP/1.1 429 Slow Down\r\n{headers}content-length: 0\r\n\r\n");
        let (_, result) = exchange(json!({}), &answer).await;
        let after = match result.unwrap_err() {
            HandlerError::RetryAfter(_, after) => Some(after.as_secs()),
            HandlerError::Retry(_) => None,
            other => panic!("{other}"),
        };
        assert_eq!(after, seconds, "{headers}");
    }
}

#[tokio::test]
async fn the_expected_status_can_be_named() {
    let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for expected in [json!(404), json!([200, 404])] {
        let (_, result) = exchange(json!({"expectStatus": expected}), not_found).await;
        assert_eq!(result.unwrap()["status"], 404);
    }
    let (_, result) = exchange(json!({"expectStatus": 200}), not_found).await;
    assert_eq!(code(result).0, "fail");
    let (_, result) = exchange(json!({"expectStatus": [404]}), NO_CONTENT).await;
    assert_eq!(code(result).1, "HTTP_STATUS");
}

#[tokio::test]
async fn a_broken_connection_is_a_retry() {
    let gone = Server::start().await.url;
    let (decision, reason, message) = code(run(&loopback(), json!({"url": gone})).await);
    assert_eq!((decision, reason.as_str()), ("retry", "HTTP_CONNECT"), "{message}");

    let (_, result) = exchange(json!({}), "nonsense\r\n\r\n").await;
    let (decision, reason, message) = code(result);
    assert_eq!((decision, reason.as_str()), ("retry", "HTTP_ERROR"), "{message}");
    assert!(!message.contains("q=1"), "the URL may hold secrets: {message}");

    let (_, result) =
        exchange(json!({}), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").await;
    assert_eq!(code(result).1, "HTTP_ERROR");
}

#[tokio::test]
async fn a_request_leaves_a_line_without_secrets() {
    let (server, http) = (Server::start().await, loopback());
    let payload = json!({"url": format!("{}/path?key=secret", server.url)});
    let place = format!("GET {}/path: ", server.url.replace("http://", ""));

    let context = context(&payload);
    let (_, result) = tokio::join!(server.answer(NO_CONTENT.as_bytes()), http.run(context.clone()));
    assert!(result.is_ok());
    let line = context.logged().unwrap();
    assert!(line.starts_with(&format!("{place}204 No Content after ")), "{line}");
    assert_eq!((line.matches('\n').count(), line.contains("secret")), (1, false), "{line}");

    drop(server);
    let refused = support::context(&payload);
    assert!(http.run(refused.clone()).await.is_err());
    let line = refused.logged().unwrap();
    assert!(line.starts_with(&format!("{place}HTTP_CONNECT: ")), "{line}");
    assert_eq!((line.matches('\n').count(), line.contains("secret")), (1, false), "{line}");
}

#[tokio::test]
async fn a_request_that_is_stopped_leaves_a_line_too() {
    let (server, http) = (Server::start().await, loopback());
    let context = context(&json!({"url": server.url}));
    tokio::select! {
        _ = http.run(context.clone()) => unreachable!("the server does not answer"),
        _ = server.listener.accept() => {}
    }
    let line = context.logged().unwrap();
    assert!(line.contains("/: no answer after "), "{line}");
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_retry() {
    let server = Server::start().await;
    let url = server.url.replace("http://", "https://");
    let http = loopback();
    let plain = async {
        let (mut stream, _) = server.listener.accept().await.unwrap();
        stream.write_all(NO_CONTENT.as_bytes()).await.unwrap();
        stream
    };
    let (_stream, result) = tokio::join!(plain, run(&http, json!({"url": url})));
    let (decision, reason, message) = code(result);
    assert_eq!((decision, reason.as_str()), ("retry", "HTTP_CONNECT"), "{message}");
}

#[tokio::test]
async fn a_bad_payload_is_a_failure_before_anything_is_sent() {
    let server = Server::start().await;
    let (http, url) = (loopback(), server.url.clone());
    for payload in [
        json!({}),
        json!({"url": url, "extra": 1}),
        json!({"url": "not a url"}),
        json!({"url": "ftp://127.0.0.1/"}),
        json!({"url": "file:///etc/passwd"}),
        json!({"url": "gopher://127.0.0.1/"}),
        json!({"url": url.replace("127", "user@127")}),
        json!({"url": url.replace("127", ":pass@127")}),
        json!({"url": "http://[fe80::1%25eth0]/"}),
        json!({"url": url, "method": "CONNECT"}),
        json!({"url": url, "method": "GET / HTTP/1.1\r\nX: y"}),
        json!({"url": url, "expectStatus": []}),
        json!({"url": url, "expectStatus": 99}),
        json!({"url": url, "expectStatus": "200"}),
    ] {
        assert_invalid(run(&http, payload.clone()).await, &payload.to_string());
    }
    assert!(!server.was_dialled());
}

#[tokio::test]
async fn s17_headers_that_are_not_the_tasks_to_set_are_refused() {
    let server = Server::start().await;
    let http = loopback();
    for (name, value) in [
        ("Host", "other"),
        ("content-length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Keep-Alive", "1"),
        ("Proxy-Authorization", "x"),
        ("Proxy-Anything", "x"),
        ("User-Agent", "x"),
        ("Idempotency-Key", "x"),
        ("Duly-Task-Id", "x"),
        ("duly-anything", "x"),
        ("X-Line", "a\r\nB: c"),
        ("X-Line", "a\nb"),
        ("X-Nul", "a\0"),
        ("X\r\nY", "a"),
        ("X Y", "a"),
        ("", "a"),
    ] {
        let payload = json!({"url": server.url, "headers": {name: value}});
        assert_invalid(run(&http, payload).await, name);
    }
    let twice = json!({"url": server.url, "headers": {"X-One": "1", "x-one": "2"}});
    assert_invalid(run(&http, twice).await, "twice");
    assert!(!server.was_dialled());
}
