//! S19, S20 and S25: callers that ask too much, and headers that every answer has.

use std::num::NonZeroU32;
use std::time::Duration;

use duly_api::{Config, Limits, Tls, TlsFiles};
use duly_client::Client;
use tokio::io::AsyncWriteExt;

use crate::auth::issuer::key_file;
use crate::server::{LIVEZ, Server, read_to_end, within_seconds};
use crate::support::{ask, engine, get, request, router};

fn limited(limits: Limits) -> Config {
    Config { limits, ..Config::default() }
}

async fn serve(config: Config) -> Server {
    Server::serve(duly_api::router(engine(), config.clone()), config).await
}

#[tokio::test]
async fn s20_a_caller_that_asks_too_much_waits() {
    let requests_per_second = NonZeroU32::new(1);
    let config = limited(Limits { requests_per_second, ..Limits::default() });
    let router = duly_api::router(engine(), config);
    for path in ["/tasks", "/livez"] {
        assert_eq!(ask(&router, get(path)).await.status, 200);
    }
    let refused = ask(&router, get("/tasks")).await;
    assert_eq!(refused.problem().1, "RATE_LIMITED");
    assert_eq!(refused.headers["retry-after"], "1");
    // A caller who writes another address into the header is still the same caller.
    for spoofed in ["203.0.113.1", "203.0.113.2"] {
        let asked = request(axum::http::Method::GET, "/tasks", &[("x-forwarded-for", spoofed)]);
        assert_eq!(ask(&router, asked).await.status, 429);
    }
}

#[tokio::test]
async fn s20_a_proxy_tells_its_clients_apart() {
    let requests_per_second = NonZeroU32::new(1);
    let proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let limits = Limits { requests_per_second, proxies, ..Limits::default() };
    let server = serve(limited(limits)).await;
    let mut statuses = Vec::new();
    for client in ["203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.2"] {
        let mut stream = server.connect().await;
        let head = format!("x-forwarded-for: 198.51.100.7, {client}\r\nconnection: close");
        let asked = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n");
        stream.write_all(asked.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        statuses.push(answer[9..12].to_owned());
    }
    assert_eq!(statuses, ["200", "200", "429", "200"]);
    server.stop().await;
}

#[tokio::test]
async fn s19_one_address_holds_only_so_many_connections() {
    let limits = Limits { connections_per_address: 2, ..Limits::default() };
    let server = serve(limited(limits)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect().await;
        stream.write_all(LIVEZ).await.unwrap();
        stream.readable().await.unwrap();
        held.push(stream);
    }
    let mut third = server.connect().await;
    drop(third.write_all(LIVEZ).await);
    assert_eq!(read_to_end(&mut third).await, "", "it is closed at once");
    drop(held);
    let client = Client::new(&server.url(), None).unwrap();
    within_seconds(async { while client.version().await.is_err() {} }).await;
    server.stop().await;
}

/// Connections that say nothing or half of something. Each takes two files of the test, one at either end.
const SLOW: usize = 1000;

#[tokio::test]
async fn s19_a_thousand_slow_connections_do_not_stop_a_healthy_client() {
    let header_timeout = Duration::from_secs(1);
    let server = serve(Config { header_timeout, ..Config::default() }).await;
    let mut slow = Vec::new();
    for n in 0..SLOW {
        let mut stream = server.connect().await;
        let said =
            [&b""[..], b"GET /livez HT", b"PRI * HTTP/2.0\r\n\r\nSM", b"POST /tasks HTTP/1.1\r\n"];
        stream.write_all(said[n % said.len()]).await.unwrap();
        slow.push(stream);
    }
    let client = Client::new(&server.url(), None).unwrap();
    for _ in 0..50 {
        within_seconds(client.version()).await.unwrap();
    }
    for stream in &mut slow {
        read_to_end(stream).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s25_every_answer_has_its_headers() {
    let files = TlsFiles { certificate: key_file("server.cert.pem"), key: key_file("server.pem") };
    let encrypted = Config { tls: Some(Tls::new(files).unwrap()), ..Config::default() };
    let encrypted = duly_api::router(engine(), encrypted);
    for path in ["/livez", "/tasks", "/nope", "/docs/", "/openapi.json"] {
        let asked = || {
            let evil = [("origin", "http://evil.example")];
            [get(path), request(axum::http::Method::GET, path, &evil)]
        };
        for request in asked() {
            let answer = ask(&encrypted, request).await;
            assert_eq!(answer.headers["strict-transport-security"], "max-age=31536000", "{path}");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(answer.headers["referrer-policy"], "no-referrer", "{path}");
            let policy = answer.headers["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'"), "{path}");
            assert!(policy.contains("frame-ancestors 'none'"), "{path}");
            assert!(!policy.contains("script-src 'self' 'unsafe"), "{path}");
            let is_docs = path.starts_with("/docs");
            assert_eq!(answer.headers.contains_key("cache-control"), !is_docs, "{path}");
            let cors = |name: &str| name.starts_with("access-control-");
            assert!(!answer.headers.keys().any(|name| cors(name.as_str())), "{path}");
        }
        for request in asked() {
            let plain = ask(&router(), request).await;
            assert!(!plain.headers.contains_key("strict-transport-security"), "{path}");
        }
    }
}
