//! A server of a few lines: every request waits until the test answers it, or cuts the line.

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::time::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::wire::LeaseView;

/// A request that waits for its answer. Dropped, the connection is cut.
pub(super) struct Asked {
    pub(super) body: Value,
    pub(super) path: String,
    answer: oneshot::Sender<String>,
}

impl Asked {
    pub(super) fn answer(self, status: u16, body: &Value) {
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = self.answer.send(head + &body);
    }

    pub(super) fn ok(self, body: &Value) {
        self.answer(200, body);
    }

    pub(super) fn refuse(self, status: u16, code: &str) {
        let problem = json!({"type": "urn:x", "title": "t", "status": status, "code": code,
            "detail": "d"});
        self.answer(status, &problem);
    }

    /// Answers a claim with these leases.
    pub(super) fn grant(self, leases: &[Lease]) {
        let leases: Vec<_> = leases.iter().map(LeaseView::from).collect();
        let answer = json!({"seq": self.body["seq"], "leases": leases});
        self.ok(&answer);
    }

    /// Answers outcomes: all of them are committed.
    pub(super) fn commit(self) {
        let answer = all(&self.body["outcomes"], "DONE");
        self.ok(&answer);
    }

    /// Answers a report: the same for all.
    pub(super) fn hear(self, status: &str) {
        let answer = all(&self.body["items"], status);
        self.ok(&answer);
    }

    /// Answers a registration with this session.
    pub(super) fn admit(self, session: u64, heartbeat_seconds: f64) {
        self.ok(&json!({"sessionId": session_id(session), "ttlSeconds": 10.0,
            "heartbeatSeconds": heartbeat_seconds}));
    }
}

fn all(items: &Value, status: &str) -> Value {
    let one =
        |item: &Value| json!({"taskId": item["taskId"], "epoch": item["epoch"], "status": status});
    json!({"items": items.as_array().unwrap().iter().map(one).collect::<Vec<_>>()})
}

pub(super) fn session_id(number: u64) -> SessionId {
    SessionId::mint(Timestamp::EPOCH, number)
}

/// Requests by what they ask for, so that the loops of a worker do not get in each other's way.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) registrations: UnboundedReceiver<Asked>,
    pub(super) beats: UnboundedReceiver<Asked>,
    pub(super) claims: UnboundedReceiver<Asked>,
    pub(super) finishes: UnboundedReceiver<Asked>,
    pub(super) reports: UnboundedReceiver<Asked>,
    pub(super) farewells: UnboundedReceiver<Asked>,
    _connections: JoinSet<()>,
}

#[derive(Clone)]
struct Doors {
    registrations: UnboundedSender<Asked>,
    beats: UnboundedSender<Asked>,
    claims: UnboundedSender<Asked>,
    finishes: UnboundedSender<Asked>,
    reports: UnboundedSender<Asked>,
    farewells: UnboundedSender<Asked>,
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let [registrations, beats, claims, finishes, reports, farewells] =
            [(); 6].map(|()| unbounded_channel());
        let doors = Doors {
            registrations: registrations.0,
            beats: beats.0,
            claims: claims.0,
            finishes: finishes.0,
            reports: reports.0,
            farewells: farewells.0,
        };
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, doors.clone()));
            }
        });
        Self {
            url,
            registrations: registrations.1,
            beats: beats.1,
            claims: claims.1,
            finishes: finishes.1,
            reports: reports.1,
            farewells: farewells.1,
            _connections: connections,
        }
    }
}

async fn serve(stream: TcpStream, doors: Doors) {
    let mut stream = BufReader::new(stream);
    while let Some((method, path, body)) = read(&mut stream).await {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { body, path: path.clone(), answer };
        let door = match (method.as_str(), path.as_str()) {
            ("DELETE", _) => &doors.farewells,
            (_, "/v1/sessions") => &doors.registrations,
            (_, "/v1/leases") => &doors.claims,
            (_, "/v1/leases/finish") => &doors.finishes,
            (_, "/v1/leases/progress" | "/v1/leases/logs") => &doors.reports,
            (_, path) if path.ends_with("/heartbeat") => &doors.beats,
            (_, path) => panic!("nobody should ask for {path}"),
        };
        let _ = door.send(asked);
        let Ok(answer) = answered.await else { return };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The next request on this connection.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, String, Value)> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|&length| length > 0)?;
    let mut words = first.split(' ').map(str::to_owned);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
            length = text.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((words.next()?, words.next()?, serde_json::from_slice(&body).unwrap_or_default()))
}
