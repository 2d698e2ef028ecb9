//! A wire between clients and a server that can be cut, held, made slow, or broken right after
//! the server has answered and before the answer arrives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::wait::observe_for;

/// What the wire does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// Passes everything on.
    Pass,
    /// Passes nothing on; connections stay open.
    Hold,
    /// Passes everything on, this much later.
    Delay(Duration),
    /// Passes requests on at once, and answers this much later: the server has done its part and
    /// read its clock, and the client hears of it late.
    DelayAnswers(Duration),
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

/// The running wire; dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    /// Where the server is; it moves when it is started again.
    upstream: watch::Sender<Option<SocketAddr>>,
    mood: watch::Sender<Mood>,
    /// Changes when all connections are to be cut.
    cuts: watch::Sender<u64>,
    /// How many more answers are to be thrown away.
    resets_wanted: AtomicU64,
    /// How many answers were thrown away.
    resets: watch::Sender<u64>,
}

impl Proxy {
    /// Starts a wire that leads nowhere yet.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: watch::channel(None).0,
            mood: watch::channel(Mood::Pass).0,
            cuts: watch::channel(0).0,
            resets_wanted: AtomicU64::new(0),
            resets: watch::channel(0).0,
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _serving: serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that clients use.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Leads to a server from now on.
    pub fn lead_to(&self, url: &str) -> anyhow::Result<()> {
        let address = url.trim_start_matches("http://").parse().context("not an address")?;
        self.shared.upstream.send_replace(Some(address));
        Ok(())
    }

    /// Cuts all connections and makes no others until it [leads](Self::lead_to) somewhere again.
    pub fn lead_nowhere(&self) {
        self.shared.upstream.send_replace(None);
        self.cut();
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Passes nothing on until [`Self::pass`].
    pub fn hold(&self) {
        self.shared.mood.send_replace(Mood::Hold);
    }

    /// Passes everything on later, until [`Self::pass`].
    pub fn delay(&self, by: Duration) {
        self.shared.mood.send_replace(Mood::Delay(by));
    }

    /// Passes requests on at once and answers later, until [`Self::pass`]. An answer that waits
    /// then waits to the end.
    pub fn delay_answers(&self, by: Duration) {
        self.shared.mood.send_replace(Mood::DelayAnswers(by));
    }

    /// Passes everything on at once.
    pub fn pass(&self) {
        self.shared.mood.send_replace(Mood::Pass);
    }

    /// Throws away the next answers: their connections are reset instead.
    pub fn reset_next(&self, answers: u64) {
        self.shared.resets_wanted.fetch_add(answers, Ordering::SeqCst);
    }

    /// Throws away no more answers.
    pub fn stop_resets(&self) {
        self.shared.resets_wanted.store(0, Ordering::SeqCst);
    }

    /// How many answers were thrown away.
    pub fn resets(&self) -> u64 {
        *self.shared.resets.borrow()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // Broken connections are what it is for.
            join(client, &shared).await.ok();
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Carries one connection until either end closes it or it is cut.
async fn join(client: TcpStream, shared: &Shared) -> anyhow::Result<()> {
    let mut cuts = shared.cuts.subscribe();
    let upstream = *shared.upstream.borrow();
    let server = TcpStream::connect(upstream.context("there is no server")?).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // Whatever ends a connection ends it hard, without an orderly close.
    client.set_zero_linger()?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        _ = cuts.changed() => {}
        _ = pump(from_client, to_server, shared) => {}
        _ = pump_answers(from_server, to_client, shared) => {}
    }
    Ok(())
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        linger(shared, Way::ToServer).await;
        to.write_all(&buffer[..count]).await?;
    }
}

/// The way of the answers. One that is to be thrown away ends the connection: what it answers
/// was carried out, and the caller does not learn it.
async fn pump_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let wanted = |left: u64| left.checked_sub(1);
        let reset = shared.resets_wanted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, wanted);
        if reset.is_ok() {
            shared.resets.send_modify(|resets| *resets += 1);
            return Ok(());
        }
        linger(shared, Way::ToClient).await;
        to.write_all(&buffer[..count]).await?;
    }
}

/// Waits as the wire's mood says.
async fn linger(shared: &Shared, way: Way) {
    let mut mood = shared.mood.subscribe();
    loop {
        let now = *mood.borrow_and_update();
        match now {
            Mood::DelayAnswers(_) if way == Way::ToServer => return,
            Mood::Pass => return,
            Mood::Delay(by) | Mood::DelayAnswers(by) => return observe_for(by).await,
            Mood::Hold => {
                if mood.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}
