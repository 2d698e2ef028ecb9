//! A minimal server: every request waits until the test answers it or closes the connection.

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

/// A request that waits for its answer. Dropping it closes the connection.
pub(super) struct PendingRequest {
    pub(super) body: Value,
    pub(super) path: String,
    answer: oneshot::Sender<String>,
}

impl PendingRequest {
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

    /// Answers a report with the same status for all items.
    pub(super) fn answer_all(self, status: &str) {
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

/// Requests by route, so that the loops of a worker do not interfere.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) registrations: UnboundedReceiver<PendingRequest>,
    pub(super) heartbeats: UnboundedReceiver<PendingRequest>,
    pub(super) claims: UnboundedReceiver<PendingRequest>,
    pub(super) finishes: UnboundedReceiver<PendingRequest>,
    pub(super) reports: UnboundedReceiver<PendingRequest>,
    pub(super) session_ends: UnboundedReceiver<PendingRequest>,
    _connections: JoinSet<()>,
}

#[derive(Clone)]
struct Senders {
    registrations: UnboundedSender<PendingRequest>,
    heartbeats: UnboundedSender<PendingRequest>,
    claims: UnboundedSender<PendingRequest>,
    finishes: UnboundedSender<PendingRequest>,
    reports: UnboundedSender<PendingRequest>,
    session_ends: UnboundedSender<PendingRequest>,
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let [registrations, heartbeats, claims, finishes, reports, session_ends] =
            [(); 6].map(|()| unbounded_channel());
        let senders = Senders {
            registrations: registrations.0,
            heartbeats: heartbeats.0,
            claims: claims.0,
            finishes: finishes.0,
            reports: reports.0,
            session_ends: session_ends.0,
        };
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, senders.clone()));
            }
        });
        Self {
            url,
            registrations: registrations.1,
            heartbeats: heartbeats.1,
            claims: claims.1,
            finishes: finishes.1,
            reports: reports.1,
            session_ends: session_ends.1,
            _connections: connections,
        }
    }
}

async fn serve(stream: TcpStream, senders: Senders) {
    let mut stream = BufReader::new(stream);
    while let Some((method, path, body)) = read(&mut stream).await {
        let (answer, answered) = oneshot::channel();
        let asked = PendingRequest { body, path: path.clone(), answer };
        let sender = match (method.as_str(), path.as_str()) {
            ("DELETE", _) => &senders.session_ends,
            (_, "/v1/sessions") => &senders.registrations,
            (_, "/v1/leases") => &senders.claims,
            (_, "/v1/leases/finish") => &senders.finishes,
            (_, "/v1/leases/progress" | "/v1/leases/logs") => &senders.reports,
            (_, path) if path.ends_with("/heartbeat") => &senders.heartbeats,
            (_, path) => panic!("unexpected request: {path}"),
        };
        let _ = sender.send(asked);
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
