//! What may stand before a server and has rules of its own: it takes less at once, or asks to wait.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use duly_testkit::raw;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What it says to a request; nothing if it passes the request on. Gets the body and how many
/// requests came before.
pub(crate) type Rule = fn(&[u8], usize) -> Option<String>;

/// The running front; dropping it ends it.
pub(crate) struct Front {
    url: String,
    asked: Arc<watch::Sender<Vec<Instant>>>,
    _serving: JoinSet<()>,
}

impl Front {
    pub(crate) async fn start(server: &str, rule: Rule) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(watch::Sender::new(Vec::new()));
        let mut serving = JoinSet::new();
        let (server, shared) = (server.to_owned(), Arc::clone(&asked));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (server, asked) = (server.clone(), Arc::clone(&shared));
                connections.spawn(async move {
                    // The client goes away in the end.
                    serve(client, &server, rule, &asked).await.ok();
                });
            }
        });
        Ok(Self { url, asked, _serving: serving })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// When each request came.
    pub(crate) fn asked(&self) -> Vec<Instant> {
        self.asked.borrow().clone()
    }
}

async fn serve(
    mut client: TcpStream,
    server: &str,
    rule: Rule,
    asked: &watch::Sender<Vec<Instant>>,
) -> anyhow::Result<()> {
    let mut server = raw::Connection::open(server).await?;
    let mut buffer = Vec::new();
    loop {
        let body = read_body(&mut client, &mut buffer).await?;
        let mut before = 0;
        asked.send_modify(|asked| {
            before = asked.len();
            asked.push(Instant::now());
        });
        let answer = match rule(&body, before) {
            Some(answer) => answer,
            None => {
                let answer = server.post("/v1/tasks/batch", &body).await?;
                let (status, length) = (answer.status, answer.body.len());
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{}", answer.body)
            }
        };
        client.write_all(answer.as_bytes()).await?;
    }
}

/// The body of the next request.
async fn read_body(client: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<Vec<u8>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_ascii_lowercase())?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let whole = end + 4 + length.context("no length")?.parse::<usize>()?;
            if buffer.len() >= whole {
                return Ok(buffer.drain(..whole).skip(end + 4).collect());
            }
        }
        anyhow::ensure!(client.read_buf(buffer).await? > 0, "the client has gone");
    }
}
