//! Answers that come piece by piece, and peers that do not read them.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use duly_api::Config;
use futures_util::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::server::{LIVEZ, Server, impatient, read_to_end, within_seconds};

const STREAM: &[u8] = b"GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn server_of(body: impl Fn() -> Body + Clone + Send + Sync + 'static) -> Router {
    Router::new().route("/livez", get(async || "live")).route("/stream", get(async move || body()))
}

/// Reads until this text has come.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        read.push(within_seconds(stream.read_u8()).await.unwrap());
    }
}

/// Waits for several idle time-outs: each of these connections is closed after one.
async fn outlast_idle_timeouts(server: &Server) {
    for _ in 0..5 {
        let mut idle = server.connect().await;
        idle.write_all(LIVEZ).await.unwrap();
        assert!(read_to_end(&mut idle).await.ends_with("live"));
    }
}

#[tokio::test]
async fn a_stream_that_is_silent_for_long_arrives_whole() {
    let more = Arc::new(Notify::new());
    let waiting = Arc::clone(&more);
    let body = move || {
        let waiting = Arc::clone(&waiting);
        let first = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"first")) });
        let last = stream::once(async move {
            waiting.notified().await;
            Ok(Bytes::from_static(b"last"))
        });
        Body::from_stream(first.chain(last))
    };
    let server = Server::serve(server_of(body), impatient()).await;
    let mut reader = server.connect().await;
    reader.write_all(STREAM).await.unwrap();
    read_until(&mut reader, "first\r\n").await;
    outlast_idle_timeouts(&server).await;
    more.notify_one();
    assert_eq!(read_to_end(&mut reader).await, "4\r\nlast\r\n0\r\n\r\n");
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_closed() {
    let piece = || Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1 << 20]));
    let endless = move || Body::from_stream(stream::repeat_with(piece));
    let large = || Body::from(vec![b'x'; 64 << 20]);
    for routes in [server_of(endless), server_of(large)] {
        // The next connection is served only once the first one is closed.
        let config = Config { connections: 1, ..impatient() };
        let server = Server::serve(routes, config).await;
        let mut deaf = server.connect().await;
        deaf.write_all(STREAM).await.unwrap();
        let mut next = server.connect().await;
        next.write_all(LIVEZ).await.unwrap();
        assert!(read_to_end(&mut next).await.ends_with("live"));
        drop(deaf);
        server.stop().await;
    }
}
