//! A server of a few lines, and the handler that calls it.

use duly_testkit::attempt;
use duly_worker::handlers::Http;
use duly_worker::{Context, Guard, Handler, HandlerError};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Waits for one request and answers it with these bytes.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) url: String,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::on("127.0.0.1:0").await
    }

    /// On this address and port.
    pub(crate) async fn on(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// The request as text, once it is complete and answered.
    pub(crate) async fn answer(&self, answer: &[u8]) -> String {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        // A client that has read enough hangs up.
        let _ = stream.write_all(answer).await;
        request
    }

    pub(crate) fn was_dialled(self) -> bool {
        let listener = self.listener.into_std().unwrap();
        listener.accept().is_ok()
    }
}

pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).await.unwrap();
        request.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return request;
        }
    }
}

pub(crate) fn loopback() -> Http {
    Http::new(Guard::new(vec!["127.0.0.0/8".parse().unwrap()]))
}

pub(crate) fn context(payload: &Value) -> Context {
    attempt::context("http", "default", &payload.to_string())
}

pub(crate) async fn run(http: &Http, payload: Value) -> Result<Value, HandlerError> {
    let output = http.run(context(&payload)).await?;
    Ok(serde_json::from_str(&output.into_text().unwrap()).unwrap())
}

/// Sends one request; returns it and the handler's result.
pub(crate) async fn exchange(
    mut payload: Value,
    answer: &str,
) -> (String, Result<Value, HandlerError>) {
    let (server, http) = (Server::start().await, loopback());
    payload["url"] = format!("{}/path?q=1", server.url).into();
    tokio::join!(server.answer(answer.as_bytes()), run(&http, payload))
}

pub(crate) fn code(result: Result<Value, HandlerError>) -> (&'static str, String, String) {
    match result.unwrap_err() {
        HandlerError::Retry(failure) => ("retry", failure.code, failure.message),
        HandlerError::Fail(failure) => ("fail", failure.code, failure.message),
        other @ (HandlerError::RetryAfter(..) | HandlerError::Release) => panic!("{other}"),
    }
}

pub(crate) fn assert_invalid(result: Result<Value, HandlerError>, case: &str) {
    let (decision, code, _) = code(result);
    assert_eq!((decision, code.as_str()), ("fail", "INVALID_PAYLOAD"), "{case}");
}
