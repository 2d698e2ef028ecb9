//! Reads a stream of server-sent events, block by block.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::server::within_seconds;
use crate::support::{ask, post, request};

/// Some lines, up to an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) is_heartbeat: bool,
}

impl Block {
    fn parse(text: &str) -> Self {
        let mut block = Self::default();
        for line in text.lines() {
            let (field, value) = line.split_once(": ").unwrap();
            match field {
                "event" => value.clone_into(&mut block.name),
                "id" => block.id = Some(value.to_owned()),
                "data" => block.data = Some(value.to_owned()),
                "" => block.is_heartbeat = value == "heartbeat",
                _ => assert_eq!(field, "retry"),
            }
        }
        block
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

/// A stream under way.
pub(crate) struct Reader {
    body: Body,
    read: String,
    /// The last place that was told.
    pub(crate) place: Option<String>,
}

/// Asks for a stream.
pub(crate) async fn call(router: &Router, request: Request<Body>) -> Response {
    router.clone().oneshot(request).await.unwrap()
}

impl Reader {
    /// Opens a stream, and reads how it begins.
    pub(crate) async fn open(router: &Router, query: &str) -> Self {
        Self::open_with(router, query, &[]).await
    }

    pub(crate) async fn open_with(router: &Router, query: &str, headers: &[(&str, &str)]) -> Self {
        let asked = request(Method::GET, &format!("/events?{query}"), headers);
        let response = call(router, asked).await;
        assert_eq!(response.status(), 200, "{query}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut reader = Self { body: response.into_body(), read: String::new(), place: None };
        let opening = reader.block().await.unwrap();
        assert_eq!((opening.name.as_str(), &opening.data), ("", &None));
        reader
    }

    /// The next block; `None` at the end.
    pub(crate) async fn block(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let block = Block::parse(block);
                self.read = rest.to_owned();
                self.place = block.id.clone().or(self.place.take());
                return Some(block);
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.read.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Block {
        let next = async {
            loop {
                let block = self.block().await.expect("the stream goes on");
                if block.data.is_some() {
                    return block;
                }
                assert!(block.is_heartbeat, "{block:?}");
            }
        };
        within_seconds(next).await
    }

    /// The data of the next message, which must be of this name.
    pub(crate) async fn data(&mut self, name: &str) -> Value {
        let message = self.message().await;
        assert_eq!(message.name, name, "{message:?}");
        message.json()
    }

    /// Reads up to the last message, and returns its code.
    pub(crate) async fn closing_code(&mut self) -> String {
        loop {
            let block = self.block().await.expect("a message says why it ends");
            if block.name == "closed" {
                assert_eq!(self.block().await, None, "it is the last one");
                assert!(!block.json()["detail"].as_str().unwrap().is_empty());
                return block.json()["code"].as_str().unwrap().to_owned();
            }
        }
    }
}

/// Submits a task of this type, and returns its id.
pub(crate) async fn submit(router: &Router, task_type: &str) -> String {
    let body = serde_json::json!({"type": task_type, "payload": {"secret": "hidden"}});
    let answer = ask(router, post("/tasks", body.to_string())).await;
    answer.json()["taskId"].as_str().unwrap().to_owned()
}
