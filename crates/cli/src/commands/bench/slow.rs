//! What a client notices of a thousand connections that send a request a byte at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use duly_store::limit::PAYLOAD;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::figures::{Figure, Target, percentiles};
use super::http::post;
use super::rest::Server;
use super::run::Run;

pub(super) const STEPS: usize = 1;
/// Slow connections.
const SLOW: usize = 1_000;
/// Between two bytes of each.
const PAUSE: Duration = Duration::from_secs(1);
/// Submits of the client, one at a time.
const SUBMITS: usize = 5_000;
/// How much longer they may take beside the slow connections.
const FACTOR: f64 = 2.0;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    let submits = run.tasks.min(SUBMITS);
    run.step(&format!("slow connections: {submits} submits without and beside {SLOW} of them"));
    let site = run.new_site("slow").await?;
    let mut server = Server::start(&site, false).await?;
    let alone = p99(&mut server, submits).await?;
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        let stream = TcpStream::connect(server.address()).await?;
        slow.spawn(dribble(server.address(), stream));
    }
    let beside = p99(&mut server, submits).await?;
    slow.shutdown().await;
    let name = format!("submit beside {SLOW} slow connections: p99");
    let most = FACTOR * alone;
    run.add(Figure::new(&name, beside, "ms").compare(alone).must(Target::AtMost(most)));
    server.stop().await?;
    site.remove().await
}

/// Never ends its request. The server closes such a connection after a while; another one follows.
async fn dribble(address: SocketAddr, mut stream: TcpStream) {
    loop {
        if stream.write_all(b"X").await.is_err() {
            match TcpStream::connect(address).await {
                Ok(next) => stream = next,
                Err(_) => return,
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn p99(server: &mut Server, submits: usize) -> anyhow::Result<f64> {
    let body = format!(r#"{{"type":"echo","payload":{PAYLOAD},"delaySeconds":86400}}"#);
    let request = post("/tasks", &body);
    let mut connection = server.connect().await?;
    let mut millis = Vec::with_capacity(submits);
    for _ in 0..submits {
        let start = Instant::now();
        connection.send(&request).await?;
        millis.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let [_, p99, _] = percentiles("submit", 99, millis);
    Ok(p99.value())
}
