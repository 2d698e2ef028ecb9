//! HTTP/1.1 by hand, for requests that no decent client would send and answers with all their
//! headers.

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::wait::within;

const NO_CONTENT: u16 = 204;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The head without its first line, in lower case.
    pub head: String,
    /// The body; of one that is no text, what can be read of it.
    pub body: String,
}

impl Answer {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Connection {
    /// Connects to a server by its URL.
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        let host = url.strip_prefix("http://").context("not a plain URL")?.to_owned();
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host, buffer: Vec::new() })
    }

    /// Posts a body as JSON.
    pub async fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        let length = format!("content-length: {}\r\n", body.len());
        self.ask("POST", path, &format!("content-type: application/json\r\n{length}"), body).await
    }

    /// Gets a path.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, "", b"").await
    }

    /// Sends a request; `headers` are whole lines.
    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> anyhow::Result<Answer> {
        let host = &self.host;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
        let request = [head.as_bytes(), body].concat();
        within("an answer comes", async {
            // A server may answer, and close, before it has read everything.
            let sent = self.stream.write_all(&request).await;
            self.read_answer().await.with_context(|| format!("{method} {path}, sent: {sent:?}"))
        })
        .await?
    }

    async fn read_answer(&mut self) -> anyhow::Result<Answer> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect())?;
        let (first, head) = head.split_once("\r\n").context("no status line")?;
        let status = first.split(' ').nth(1).context("no status")?.parse()?;
        let mut answer = Answer { status, head: head.to_ascii_lowercase(), body: String::new() };
        let length: usize = match answer.header("content-length") {
            Some(length) => length.parse()?,
            None if status == NO_CONTENT => 0,
            None => bail!("no length"),
        };
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Ok(answer)
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection ended before the answer did");
        }
        Ok(())
    }
}
