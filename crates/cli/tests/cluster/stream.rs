//! A reader of the stream of events whose connection breaks again and again, and that comes back through
//! another node each time, under load.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use duly_client::Client;
use duly_client::wire::CloudEvent;
use duly_testkit::report;
use rand::Rng as _;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::harness::{Cluster, submit_all};

const ROUNDS: usize = 100;
const BATCH: usize = 20;
/// How long the next event may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection: one that speaks HTTP/1.0, so that the answer comes as it is.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn open(client: &Client, place: Option<&str>) -> anyhow::Result<Self> {
        let url = client.base_url();
        let (host, port) = (url.host_str().context("a host")?, url.port().context("a port")?);
        let mut stream = TcpStream::connect((host, port)).await?;
        let place = place.map(|place| format!("last-event-id: {place}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /events?topics=events&filter=event:task.succeeded HTTP/1.0\r\n\
             host: {host}:{port}\r\n{place}\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut open = Self(BufReader::new(stream));
        let status = open.line().await?;
        if !status.contains(" 200 ") {
            bail!("unexpected answer: {status}");
        }
        while !open.line().await?.is_empty() {}
        Ok(open)
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_line(&mut line)).await;
        if read.context("no event came")?? == 0 {
            bail!("the server closed the stream");
        }
        Ok(line.trim_end().to_owned())
    }
}

/// What a reader has got, over all its connections.
#[derive(Default)]
struct Reader {
    place: Option<String>,
    ids: HashSet<String>,
    subjects: HashSet<String>,
}

impl Reader {
    /// Reads one event.
    async fn next(&mut self, connection: &mut Connection) -> anyhow::Result<()> {
        let mut data = None;
        loop {
            let line = connection.line().await?;
            if let Some(place) = line.strip_prefix("id:") {
                self.place = Some(place.trim().to_owned());
            } else if let Some(text) = line.strip_prefix("data:") {
                data = Some(text.to_owned());
            } else if line.starts_with("event:") && line.contains("reset") {
                bail!("the place was not kept");
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                let event: CloudEvent = serde_json::from_str(&data)?;
                if !self.ids.insert(event.id) {
                    bail!("the event of {} came twice", event.subject);
                }
                self.subjects.insert(event.subject);
                return Ok(());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_resumed_a_hundred_times_misses_and_repeats_nothing() -> anyhow::Result<()>
{
    let Some(cluster) = Cluster::start(2, &[]).await? else { return Ok(()) };
    let mut random = report::seeded("resumed streams")?;
    let mut reader = Reader::default();
    let mut connection = Connection::open(cluster.client(), None).await?;
    let batch = vec![serde_json::from_value(json!({"type": "echo"}))?; BATCH];
    let mut expected = HashSet::new();
    for round in 0..ROUNDS {
        let node = &cluster.nodes[round % 2];
        for _ in 0..3 {
            let ids = submit_all(&node.client, &batch).await?;
            expected.extend(ids.iter().map(ToString::to_string));
        }
        let behind = expected.len() - reader.subjects.len();
        for _ in 0..random.random_range(1..=behind.min(2 * 3 * BATCH)) {
            reader.next(&mut connection).await?;
        }
        drop(connection);
        connection = Connection::open(&node.client, reader.place.as_deref()).await?;
    }
    while reader.subjects.len() < expected.len() {
        reader.next(&mut connection).await?;
    }
    assert_eq!(reader.subjects, expected);
    report::say(&format!("{} events over {} connections", reader.ids.len(), ROUNDS + 1));
    Ok(())
}
