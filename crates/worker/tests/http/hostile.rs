//! Targets that mean harm, or are broken: each is cut off at a limit, and its attempt fails.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::support::{Server, code, loopback, read_request, run};

/// What the buffers of two sockets may hold beyond what the handler reads.
const IN_FLIGHT: usize = 16 << 20;

/// Accepts one request, sends this and then this again and again; returns how many bytes went out
/// before the client hung up.
async fn flood(server: &Server, first: &[u8], again: &[u8]) -> usize {
    let (mut stream, _) = server.listener.accept().await.unwrap();
    read_request(&mut stream).await;
    let mut sent = 0;
    let mut next = first;
    while stream.write_all(next).await.is_ok() {
        sent += next.len();
        next = again;
    }
    sent
}

/// Sends this, and then nothing for as long as the client stays. No time passes until all that can
/// happen has happened.
async fn stall(server: &Server, answer: &[u8]) {
    let (mut stream, _) = server.listener.accept().await.unwrap();
    read_request(&mut stream).await;
    stream.write_all(answer).await.unwrap();
    tokio::time::pause();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn s15_an_endless_body_is_cut() {
    let (server, http) = (Server::start().await, loopback());
    let piece = [b'x'; 64 * 1024];
    for (status, decision) in [("200 OK", "cut"), ("500 X", "retry"), ("404 X", "fail")] {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 10737418240\r\n\r\n");
        let payload = json!({"url": server.url});
        let (sent, result) =
            tokio::join!(flood(&server, head.as_bytes(), &piece), run(&http, payload));
        assert!(sent < IN_FLIGHT, "{sent} bytes");
        if decision == "cut" {
            let result = result.unwrap();
            assert_eq!(result["body"].as_str().unwrap().len(), 64 * 1024);
            assert_eq!(result["truncated"], true);
        } else {
            let (decided, reason, message) = code(result);
            assert_eq!((decided, reason.as_str()), (decision, "HTTP_STATUS"));
            assert!(message.len() < 2048, "{} bytes", message.len());
        }
    }
}

#[tokio::test]
async fn s15_endless_headers_are_cut() {
    let (server, http) = (Server::start().await, loopback());
    let long = [&b"x-long: "[..], &[b'x'; 64 * 1024]].concat();
    for (first, again) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"x-one: 1\r\n".repeat(100)[..]),
        (b"HTTP/1.1 200 OK\r\n", &long),
        (b"HTTP/1.1 200 ", &[b'x'; 4096]),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n"),
    ] {
        let (sent, result) =
            tokio::join!(flood(&server, first, again), run(&http, json!({"url": server.url})));
        let (decision, reason, message) = code(result);
        assert_eq!((decision, reason.as_str()), ("retry", "HTTP_ERROR"), "{message}");
        assert!(sent < IN_FLIGHT, "{sent} bytes");
    }
}

#[tokio::test]
async fn s15_a_hundred_thousand_headers_are_an_error() {
    let (server, http) = (Server::start().await, loopback());
    let lines: String = (0..100_000).map(|n| format!("x-{n}: 1\r\n")).collect();
    let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n");
    let payload = json!({"url": server.url});
    let (_, result) = tokio::join!(server.answer(answer.as_bytes()), run(&http, payload));
    assert_eq!(code(result).1, "HTTP_ERROR");
}

#[tokio::test]
async fn s15_a_packed_body_is_not_unpacked() {
    // A member of 20 bytes that would unpack to nothing; what matters is that it stays as it is.
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n";
    let (server, http) = (Server::start().await, loopback());
    let answer = [&head[..], packed].concat();
    let payload = json!({"url": server.url});
    let (request, result) = tokio::join!(server.answer(&answer), run(&http, payload));
    assert!(!request.contains("accept-encoding"), "{request}");
    let body = result.unwrap()["body"].as_str().unwrap().to_owned();
    assert!(body.starts_with('\u{1f}') && body.chars().count() == 20, "{body:?}");
}

#[tokio::test]
async fn s15_a_body_that_stalls_is_given_up() {
    for (head, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome", ("retry", "HTTP_ERROR")),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome", ("retry", "HTTP_ERROR")),
        ("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\nsome", ("retry", "HTTP_STATUS")),
    ] {
        let (server, http) = (Server::start().await, loopback());
        let result = tokio::select! {
            result = run(&http, json!({"url": server.url})) => result,
            () = stall(&server, head.as_bytes()) => unreachable!("the target never ends"),
        };
        tokio::time::resume();
        let (decision, reason, message) = code(result);
        assert_eq!((decision, reason.as_str()), expected, "{message}");
    }
}

#[tokio::test]
async fn s15_a_self_signed_certificate_is_refused() {
    let server = Server::start().await;
    let http = loopback();
    let port = server.listener.local_addr().unwrap().port();
    let listener = server.listener.into_std().unwrap();
    listener.set_nonblocking(false).unwrap();
    let target = tokio::task::spawn_blocking(move || {
        let certificate = CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut tls = rustls::StreamOwned::new(connection, stream);
        let mut request = [0; 64];
        let read = tls.read(&mut request).unwrap_or_default();
        let _ = tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        read
    });
    let (decision, reason, message) =
        code(run(&http, json!({"url": format!("https://127.0.0.1:{port}/")})).await);
    assert_eq!((decision, reason.as_str()), ("retry", "HTTP_CONNECT"), "{message}");
    assert_eq!(target.await.unwrap(), 0, "no byte of the request was sent");
}

/// A key and its own certificate for localhost and 127.0.0.1; of use in this test alone.
const PEM: &str = include_str!("self_signed.pem");
