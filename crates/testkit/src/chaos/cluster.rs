//! Many nodes over one PostgreSQL, each with a wire to it and a wire from the clients, beside worker
//! processes that find whichever node is there; and how to break and mend them.

pub(super) mod nemesis;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use duly_core::id::NodeId;
use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::callee::Callee;
use super::clients::Scene;
use super::crew::{Crew, WORKERS};
use super::doors::Doors;
use super::notes::Notes;
use super::{Config, NODE_TTL};
use crate::Node;
use crate::history::{Edge, FaultKind};
use crate::keys::Keys;
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use crate::wait::{PATIENCE, eventually};

/// Handlers that each node runs at once.
const CONCURRENCY: &str = "16";
/// How long to wait for one answer about the nodes: one that is away does not give any.
const ANSWER: Duration = Duration::from_secs(1);

/// Everything that takes part.
pub(super) struct Cluster {
    duly: PathBuf,
    keys: Keys,
    /// The token of clients.
    token: String,
    seats: Vec<Seat>,
    /// Between each worker and a node.
    wires: [Proxy; WORKERS],
    /// Which node each of these leads to.
    homes: Mutex<[usize; WORKERS]>,
    postgres: Mutex<Postgres>,
    /// Where the database listens.
    address: String,
    callee: Callee,
    crew: Crew,
    notes: Arc<Notes>,
}

/// A node and what connects it.
struct Seat {
    name: String,
    node: Mutex<Option<Node>>,
    /// A bug to switch on in it.
    bug: Option<String>,
    /// From the clients.
    gate: Proxy,
    /// To the database.
    line: Proxy,
}

impl Cluster {
    pub(super) async fn build(
        config: &Config,
        nodes: usize,
        is_durable: bool,
    ) -> anyhow::Result<Self> {
        let duly = config.duly.clone();
        let notes = Arc::new(Notes::open(&config.folder)?);
        let postgres = Postgres::start(&config.folder.join("postgres"), is_durable).await?;
        let address = postgres.address();
        let keys = Keys::write(&duly, &config.folder)?;
        let token = keys.token("operator").await?;
        let mut seats = Vec::new();
        for number in 0..nodes {
            let name = format!("node-{number}");
            let seat = Seat::new(name, &address, config.bug.clone()).await?;
            seat.start(&duly, &keys).await?;
            seats.push(seat);
        }
        let mut wires = Vec::new();
        for place in 0..WORKERS {
            let wire = Proxy::start().await?;
            wire.lead_to(&seats[place % nodes].gate.url())?;
            wires.push(wire);
        }
        let homes = Mutex::new(std::array::from_fn(|place| place % nodes));
        let wires: [Proxy; WORKERS] = wires.try_into().expect("one for each worker");
        let urls = std::array::from_fn(|place| wires[place].url());
        let worker = Some(keys.token("worker").await?);
        let crew = Crew::start(duly.clone(), urls, worker, Arc::clone(&notes)).await?;
        let callee = Callee::start(notes.effects()).await?;
        let postgres = Mutex::new(postgres);
        Ok(Self { duly, keys, token, seats, wires, homes, postgres, address, callee, crew, notes })
    }

    /// What clients see of it.
    pub(super) fn scene(&self) -> anyhow::Result<Scene> {
        Ok(Scene { doors: self.doors()?, callee: Some(self.callee.url()) })
    }

    fn doors(&self) -> anyhow::Result<Doors> {
        let urls: Vec<_> = self.seats.iter().map(|seat| seat.gate.url()).collect();
        Doors::to(&urls, Some(&self.token))
    }

    /// `kill -9` of a node, and a new start.
    async fn kill_node(&self, place: usize) -> anyhow::Result<()> {
        self.kill(place).await?;
        self.seats[place].start(&self.duly, &self.keys).await
    }

    /// `kill -9` of the node that leads; it starts again when another one does.
    async fn kill_leader(&self) -> anyhow::Result<()> {
        let doors = self.doors()?;
        let ask = || async { self.leader(&doors, 0).await };
        let (before, name) = eventually("a node leads", PATIENCE, ask).await?;
        let place = self.seats.iter().position(|seat| seat.name == name);
        let place = place.with_context(|| format!("{name} leads, and is not one of ours"))?;
        self.notes.fault(FaultKind::Leaderless, &name, Edge::Begin)?;
        self.kill(place).await?;
        let another = || async {
            self.leader(&doors, place + 1).await.filter(|(leader, _)| *leader != before)
        };
        eventually("another node leads", PATIENCE, another).await?;
        self.notes.fault(FaultKind::Leaderless, &name, Edge::End)?;
        self.seats[place].start(&self.duly, &self.keys).await
    }

    /// Which node leads, as the node of this number or one behind it tells.
    async fn leader(&self, doors: &Doors, number: usize) -> Option<(NodeId, String)> {
        for number in number..number + doors.count() {
            let Ok(Ok(list)) = timeout(ANSWER, doors.door(number).list_nodes()).await else {
                continue;
            };
            let leader = list.leader?.node_id;
            let node = list.items.into_iter().find(|node| node.node_id == leader)?;
            return Some((leader, node.name));
        }
        None
    }

    async fn kill(&self, place: usize) -> anyhow::Result<()> {
        let seat = &self.seats[place];
        let node = seat.node.lock().await.take().context("there is no node")?;
        self.notes.fault(FaultKind::Kill, &seat.name, Edge::Begin)?;
        node.kill().await?;
        self.notes.fault(FaultKind::Kill, &seat.name, Edge::End)?;
        self.move_workers(place).await
    }

    /// SIGTERM's way of ending a node, and a new start.
    async fn restart_node(&self, place: usize) -> anyhow::Result<()> {
        let seat = &self.seats[place];
        let node = seat.node.lock().await.take().context("there is no node")?;
        self.notes.fault(FaultKind::Restart, &seat.name, Edge::Begin)?;
        self.move_workers(place).await?;
        let (status, said) = node.terminate().await?;
        ensure!(status.success(), "the node ended with {status}: {said}");
        self.notes.fault(FaultKind::Restart, &seat.name, Edge::End)?;
        seat.start(&self.duly, &self.keys).await
    }

    /// Stops a node in whatever it does, for as long as `pause` takes. Whoever talks to it waits;
    /// new connections go to other nodes.
    async fn pause_node(
        &self,
        place: usize,
        pause: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let seat = &self.seats[place];
        let node = seat.node.lock().await;
        let node = node.as_ref().context("there is no node")?;
        self.notes.fault(FaultKind::Pause, &seat.name, Edge::Begin)?;
        node.signal(Signal::STOP)?;
        self.move_workers(place).await?;
        pause.await;
        node.signal(Signal::CONT)?;
        self.notes.fault(FaultKind::Pause, &seat.name, Edge::End)
    }

    /// Ends the database at once and starts it again after `pause`.
    async fn crash_database(&self, pause: impl Future<Output = ()>) -> anyhow::Result<()> {
        let mut postgres = self.postgres.lock().await;
        self.notes.fault(FaultKind::Restart, "database", Edge::Begin)?;
        postgres.crash().await?;
        pause.await;
        postgres.start_again().await?;
        self.notes.fault(FaultKind::Restart, "database", Edge::End)
    }

    /// The database ends all its connections.
    async fn terminate_connections(&self) -> anyhow::Result<()> {
        let postgres = self.postgres.lock().await;
        self.notes.fault(FaultKind::Terminate, "database", Edge::Begin)?;
        let ended = postgres.terminate_all().await?;
        ensure!(ended > 0, "no node had a connection");
        self.notes.fault(FaultKind::Terminate, "database", Edge::End)
    }

    /// Cuts nodes off from the database, or lets nothing pass between them, for as long as `pause`
    /// takes.
    async fn part(
        &self,
        fault: FaultKind,
        places: &[usize],
        pause: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let seats = places.iter().map(|place| &self.seats[*place]);
        let all = places.len() == self.seats.len();
        let target = if all { "database" } else { &self.seats[places[0]].name };
        self.notes.fault(fault, target, Edge::Begin)?;
        for seat in seats.clone() {
            match fault {
                FaultKind::Hold => seat.line.hold(),
                _ => seat.line.lead_nowhere(),
            }
        }
        pause.await;
        for seat in seats {
            seat.line.pass();
            seat.line.lead_to(&self.address)?;
        }
        self.notes.fault(fault, target, Edge::End)
    }

    /// The answers of the database reach a node this late, for as long as `pause` takes.
    async fn delay_answers(
        &self,
        place: usize,
        late: Duration,
        pause: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let seat = &self.seats[place];
        self.notes.fault(FaultKind::Delay, &seat.name, Edge::Begin)?;
        seat.line.delay_answers(late);
        pause.await;
        seat.line.pass();
        self.notes.fault(FaultKind::Delay, &seat.name, Edge::End)
    }

    /// Workers whose node is away find the next one.
    async fn move_workers(&self, away: usize) -> anyhow::Result<()> {
        let mut homes = self.homes.lock().await;
        for (home, wire) in homes.iter_mut().zip(&self.wires) {
            if *home == away {
                *home = (away + 1) % self.seats.len();
                wire.lead_to(&self.seats[*home].gate.url())?;
            }
        }
        Ok(())
    }

    /// Lets everybody go home.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        self.crew.stop().await?;
        for seat in self.seats {
            if let Some(node) = seat.node.into_inner() {
                let (status, said) = node.terminate().await?;
                ensure!(status.success(), "a node ended with {status}: {said}");
            }
        }
        self.postgres.into_inner().remove().await
    }
}

impl Seat {
    async fn new(name: String, database: &str, bug: Option<String>) -> anyhow::Result<Self> {
        let (gate, line) = (Proxy::start().await?, Proxy::start().await?);
        line.lead_to(database)?;
        Ok(Self { name, node: Mutex::new(None), bug, gate, line })
    }

    /// Starts its node.
    async fn start(&self, duly: &Path, keys: &Keys) -> anyhow::Result<()> {
        let store = Postgres::url_at(&self.line.address().to_string());
        let ttl = format!("{}ms", NODE_TTL.as_millis());
        let mut flags = vec!["--session-ttl", &ttl, "--concurrency", CONCURRENCY];
        // Many faults hit the same long task; what is tested here is not the limit.
        flags.extend(["--loss-limit", "1000"]);
        if let Some(bug) = &self.bug {
            flags.extend(["--planted-bug", bug]);
        }
        // The database and its only user are made for the run.
        flags.push("--allow-owner");
        // Tasks call a target on this machine.
        flags.extend(["--allow-net", "127.0.0.0/8"]);
        let node = Node::start_with_keys(duly, &self.name, &store, keys.config()?, &flags).await?;
        self.gate.lead_to(node.url())?;
        *self.node.lock().await = Some(node);
        Ok(())
    }
}
