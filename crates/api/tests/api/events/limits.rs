//! S19: how many streams there may be, and what many of them cost.

use axum::Router;
use axum::http::Method;
use duly_api::{Config, Limits};
use duly_core::lease::Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::reader::{Reader, call, submit};
use crate::auth::issuer::{as_bearer, claims, config, guarded, token};
use crate::server::{Server, within_seconds};
use crate::support::{Hand, ask, engine, get, router_over};

const STATS: &str = "/events?topics=stats";

async fn assert_refused(router: &Router) {
    let refused = ask(router, get(STATS)).await;
    assert_eq!((refused.problem().0, refused.problem().1.as_str()), (429, "TOO_MANY_STREAMS"));
    assert_eq!(refused.headers["retry-after"], "10");
}

#[tokio::test]
async fn s19_a_caller_has_only_so_many_streams() {
    let limits = Limits { streams_per_caller: 2, ..Limits::default() };
    let router = duly_api::router(engine(), Config { limits, ..Config::default() });
    let first = Reader::open(&router, "topics=stats").await;
    let second = Reader::open(&router, "topics=stats").await;
    assert_refused(&router).await;
    drop((first, second));
    Reader::open(&router, "topics=stats").await;
}

#[tokio::test]
async fn s19_callers_have_their_own_streams() {
    let limits = Limits { streams_per_caller: 1, ..Limits::default() };
    let router = duly_api::router(engine(), Config { limits, ..guarded(&config()) });
    let mut held = Vec::new();
    for subject in ["ada", "bob"] {
        let mut claims = claims();
        claims["sub"] = subject.into();
        let token = token(&claims);
        held.push(call(&router, as_bearer(Method::GET, STATS, &token)).await);
        let again = call(&router, as_bearer(Method::GET, STATS, &token)).await;
        assert_eq!(again.status(), 429, "{subject}");
    }
    assert!(held.iter().all(|response| response.status() == 200));
}

#[tokio::test]
async fn s19_streams_leave_half_of_the_connections() {
    let router = duly_api::router(engine(), Config { connections: 4, ..Config::default() });
    let held =
        [Reader::open(&router, "topics=stats").await, Reader::open(&router, "topics=stats").await];
    assert_refused(&router).await;
    drop(held);
    Reader::open(&router, "topics=stats").await;
}

/// Each takes two files of the test, one at either end.
const MANY: usize = 1000;

/// Reads until this text has come.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let (mut read, mut some) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&read).contains(text) {
        let count = within_seconds(stream.read(&mut some)).await.unwrap();
        assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&some[..count]);
    }
}

#[tokio::test]
async fn a_thousand_streams_are_told_of_one_change() {
    let engine = engine();
    let router = router_over(&engine);
    let server = Server::serve(router.clone(), Config::default()).await;
    let mut streams = Vec::new();
    for _ in 0..MANY {
        let mut stream = server.connect().await;
        let asked = b"GET /events?topics=events&filter=event:task.succeeded HTTP/1.1\r\n\
                      host: localhost\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        streams.push(stream);
    }
    for stream in &mut streams {
        read_until(stream, "retry: 1000").await;
    }
    let hand = Hand::of(&engine, &["a"]).await;
    let id = submit(&router, "a").await;
    hand.end(Outcome::Success { result: None }, None).await;
    for stream in &mut streams {
        read_until(stream, &id).await;
    }
    engine.begin_close();
    for stream in &mut streams {
        read_until(stream, "SHUTTING_DOWN").await;
    }
    server.stop().await;
}
