//! What only a socket shows: silent and slow peers, both protocols, shutdown.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use duly_api::Config;
use duly_client::Client;
use duly_client::wire::{CancelRequest, RegisterRequest, SubmitRequest, WorkerLife};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::router;

pub(crate) struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(config: Config) -> Self {
        Self::serve(router(), config).await
    }

    /// Serves these routes.
    pub(crate) async fn serve(router: Router, config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = duly_api::serve(listener, router, config, shutdown.clone());
        Self { address, shutdown, task: TaskTracker::new().spawn(serving) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        within_seconds(self.task).await.unwrap();
    }
}

pub(crate) fn impatient() -> Config {
    Config {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(100),
        ..Config::default()
    }
}

pub(crate) async fn within_seconds<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("an answer in time")
}

/// All that comes until the server closes the connection.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is also an end.
    drop(within_seconds(stream.read_to_end(&mut bytes)).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) const LIVEZ: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn peers_that_say_nothing_or_half_are_closed() {
    let server = Server::start(impatient()).await;
    for said in [&b""[..], b"GET /livez HTTP/1.1\r\nhost: lo", b"PRI * HT", b"G"] {
        let mut stream = server.connect().await;
        stream.write_all(said).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    read_to_end(&mut stream).await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_has_become_idle_is_closed() {
    let server = Server::start(impatient()).await;
    let mut stream = server.connect().await;
    stream.write_all(LIVEZ).await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
    server.stop().await;
}

#[tokio::test]
async fn a_client_is_answered_over_one_connection() {
    let server = Server::start(Config::default()).await;
    let client = Client::new(&format!("http://{}", server.address), None).unwrap();
    for _ in 0..3 {
        assert_eq!(client.version().await.unwrap().name, "duly");
    }
    let bad = duly_client::wire::SubmitRequest::new("Not A Name");
    let error = client.submit(&bad).await.unwrap_err();
    assert_eq!(error.code(), Some("INVALID_FIELDS"));
    server.stop().await;
}

#[tokio::test]
async fn a_client_lists_and_drains_workers_waits_and_deletes() {
    let server = Server::start(Config::default()).await;
    let client = Client::new(&format!("http://{}", server.address), None).unwrap();
    let worker = RegisterRequest { types: vec!["A".to_owned()], ..RegisterRequest::default() };
    let session = client.register(&worker).await.unwrap().session_id;
    assert_eq!(client.drain_worker(session, true).await.unwrap().state, WorkerLife::Draining);
    let listed = client.workers().await.unwrap().items;
    assert_eq!((listed[0].worker_id, listed[0].state), (session, WorkerLife::Draining));
    assert_eq!(client.drain_worker(session, false).await.unwrap().state, WorkerLife::Active);
    let task = SubmitRequest::new("unserved");
    let task = client.submit_and_wait(&task, Duration::from_millis(20)).await.unwrap();
    let refused = client.delete_task(task.task_id).await.unwrap_err();
    assert_eq!(refused.code(), Some("STATE_CONFLICT"));
    client.cancel_task(task.task_id, &CancelRequest::default()).await.unwrap();
    client.delete_task(&task.task_id.to_string()[..13]).await.unwrap();
    assert_eq!(client.get_task(task.task_id, None).await.unwrap_err().status(), Some(404));
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_while_it_is_sent() {
    let server = Server::start(Config::default()).await;
    let body = vec![b' '; 8 * 1024 * 1024];
    let mut stream = server.connect().await;
    let head = format!(
        "POST /tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    within_seconds(stream.write_all(&body)).await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 413"));
    server.stop().await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = Server::start(Config::default()).await;
    for head in [format!("x: {}\r\n", "y".repeat(128 * 1024)), "x: y\r\n".repeat(200)] {
        let mut stream = server.connect().await;
        let request = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{head}\r\n");
        drop(stream.write_all(request.as_bytes()).await);
        let answer = read_to_end(&mut stream).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    server.stop().await;
}

/// The HTTP library answers these itself and has no place for a body of ours.
#[tokio::test]
async fn what_is_no_request_is_answered_without_a_problem() {
    let server = Server::start(Config::default()).await;
    for (sent, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400 Bad Request"),
        ("GET /livez HTTP/1.1\r\nbad header\r\n\r\n".to_owned(), "400 Bad Request"),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(65_535)),
            "431 Request Header Fields Too Large",
        ),
        (
            format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(101)),
            "431 Request Header Fields Too Large",
        ),
    ] {
        let mut stream = server.connect().await;
        drop(stream.write_all(sent.as_bytes()).await);
        let answer = read_to_end(&mut stream).await;
        let about = &sent[..40.min(sent.len())];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{about}: {answer}");
        assert!(answer.contains("content-length: 0\r\n"), "{about}: {answer}");
        assert!(!answer.contains("x-request-id"), "{about}: {answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn shutdown_answers_what_was_asked_and_closes_the_rest() {
    let config = Config { shutdown_grace: Duration::from_millis(200), ..Config::default() };
    let server = Server::start(config).await;
    let mut idle = server.connect().await;
    idle.write_all(LIVEZ).await.unwrap();
    let mut first = [0; 15];
    within_seconds(idle.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    // A body that never comes: this one outlasts the grace and is cut.
    let mut stuck = server.connect().await;
    let head = b"POST /tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 9\r\n\r\n{";
    stuck.write_all(head).await.unwrap();
    let address = server.address;
    server.stop().await;
    read_to_end(&mut idle).await;
    assert_eq!(read_to_end(&mut stuck).await, "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let server = Server::start(Config { connections: 1, ..Config::default() }).await;
    let mut first = server.connect().await;
    first.write_all(LIVEZ).await.unwrap();
    let mut byte = [0; 1];
    within_seconds(first.read_exact(&mut byte)).await.unwrap();
    let mut second = server.connect().await;
    second.write_all(LIVEZ).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(50), second.read_exact(&mut byte)).await;
    assert!(early.is_err(), "the second connection was served beside the first");
    drop(first);
    within_seconds(second.read_exact(&mut byte)).await.unwrap();
    server.stop().await;
}
