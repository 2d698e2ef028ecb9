//! A cheap reader of a stream of events, so that it does not measure itself.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use duly_core::ports::clock::Clock as _;
use duly_core::time::Timestamp;
use duly_store::clock::SystemClock;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// An open stream.
pub(super) struct Stream {
    reader: BufReader<TcpStream>,
    line: String,
    clock: SystemClock,
}

impl Stream {
    pub(super) async fn open(address: SocketAddr, query: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await.context("cannot reach the server")?;
        let request = format!("GET /events?{query} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let reader = BufReader::with_capacity(4096, stream);
        let mut open = Self { reader, line: String::new(), clock: SystemClock::default() };
        let status = open.next_line().await?.to_owned();
        if !status.contains(" 200 ") {
            bail!("unexpected answer: {status}");
        }
        while !open.next_line().await?.trim().is_empty() {}
        Ok(open)
    }

    async fn next_line(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        if self.reader.read_line(&mut self.line).await? == 0 {
            bail!("the server closed the stream");
        }
        Ok(&self.line)
    }

    /// How long ago the next event happened, in milliseconds.
    pub(super) async fn next_delay(&mut self) -> anyhow::Result<f64> {
        loop {
            let Some(data) = self.next_line().await?.strip_prefix("data:") else { continue };
            let event: serde_json::Value = serde_json::from_str(data.trim())?;
            let time = event["time"].as_str().context("an event without a time")?;
            let at = Timestamp::parse(time)?;
            return Ok((self.clock.now().millis() - at.millis()) as f64);
        }
    }

    /// Reads on and forgets what it reads, until it is dropped.
    pub(super) fn read_on(mut self) -> JoinSet<()> {
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut buffer = [0; 4096];
            while self.reader.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
        });
        reading
    }
}
