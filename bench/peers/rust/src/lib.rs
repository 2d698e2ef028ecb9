//! What is measured of a peer in Rust, and how: the same for each of them, and the same definitions
//! as `bench/peers/node/measure.mjs` and `bench/peers/celery/driver.py`.
//!
//! A driver is called as `DRIVER PEER PART TASKS` on an empty store and prints one line of JSON per
//! figure.

mod figure;
mod payload;

use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, ensure};
use tokio::sync::mpsc;
use tokio::time::sleep;

pub use self::payload::{Payload, Recorder, Start};

/// Tasks in one call where the peer has a call for many.
const BULK: usize = 1000;
/// Between lone tasks: the last one's outcome is stored, the peer is idle again.
const PAUSE: Duration = Duration::from_millis(10);
/// From the first submit of delayed tasks to the first due time: enough to store all of them.
const LEAD: Duration = Duration::from_secs(8);
/// Over so long the delayed tasks are due.
const SPREAD: Duration = Duration::from_secs(10);

/// A scheduler under test, opened on an empty store.
#[expect(async_fn_in_trait, reason = "called from one place, which needs no Send")]
pub trait Peer: Sized {
    /// What runs the tasks, held as long as it should.
    type Worker;

    /// The version of the library.
    fn version(&self) -> &'static str;
    /// What differs from its defaults in this part.
    fn settings(&self, part: Part) -> String;
    /// Submits one task and waits until the peer has taken it.
    async fn submit(&mut self, task: Payload) -> anyhow::Result<()>;
    /// Submits many in one call.
    async fn submit_bulk(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()>;
    /// Submits many in one call, each to be run at its [`Payload::due`].
    async fn submit_delayed(&mut self, tasks: Vec<Payload>) -> anyhow::Result<()>;
    /// Starts to run tasks; each is told to the recorder.
    async fn work(&mut self, part: Part, recorder: Recorder) -> anyhow::Result<Self::Worker>;
}

/// What one run of a driver measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One client that waits for each answer.
    Single,
    /// Tasks stored in bulk, then workers started.
    Backlog,
    /// A lone task on an idle peer.
    Idle,
    /// Tasks with a due time.
    Delayed,
}

/// The command line: which peer, which part, how many tasks.
pub struct Order {
    pub peer: String,
    pub part: Part,
    pub tasks: usize,
}

impl Order {
    pub fn from_args() -> anyhow::Result<Self> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let [peer, part, tasks] = args.as_slice() else {
            anyhow::bail!("usage: DRIVER PEER single|backlog|idle|delayed TASKS");
        };
        let part = match part.as_str() {
            "single" => Part::Single,
            "backlog" => Part::Backlog,
            "idle" => Part::Idle,
            "delayed" => Part::Delayed,
            other => anyhow::bail!("no part {other}"),
        };
        Ok(Self { peer: peer.clone(), part, tasks: tasks.parse().context("TASKS is a number")? })
    }
}

/// The address of a service or the folder for files, as the runner gives it.
pub fn required(variable: &str) -> anyhow::Result<String> {
    std::env::var(variable)
        .with_context(|| format!("{variable} is not set: bench/peers/run sets it"))
}

/// Measures one part, prints its figures and ends the process: the store is thrown away, so
/// workers need not end in order.
pub async fn measure<P: Peer>(order: &Order, mut peer: P) -> anyhow::Result<()> {
    let figures = match order.part {
        Part::Single => single(&mut peer, order.tasks).await?,
        Part::Backlog => backlog(&mut peer, order.tasks).await?,
        Part::Idle => idle(&mut peer, order.tasks).await?,
        Part::Delayed => delayed(&mut peer, order.tasks).await?,
    };
    let settings = peer.settings(order.part);
    for (figure, value, unit) in figures {
        figure::print(&order.peer, peer.version(), &figure, value, unit, &settings)?;
    }
    std::process::exit(0)
}

type Figures = Vec<(String, f64, &'static str)>;

async fn single<P: Peer>(peer: &mut P, tasks: usize) -> anyhow::Result<Figures> {
    let start = Instant::now();
    for number in 0..tasks {
        peer.submit(Payload::now(number)).await?;
    }
    Ok(vec![figure::rate("submit single", tasks, start.elapsed())])
}

async fn backlog<P: Peer>(peer: &mut P, tasks: usize) -> anyhow::Result<Figures> {
    let start = Instant::now();
    for bulk in bulks(tasks) {
        peer.submit_bulk(bulk.map(Payload::now).collect()).await?;
    }
    let submit = start.elapsed();
    let (recorder, mut starts) = Recorder::new();
    let _worker = peer.work(Part::Backlog, recorder).await?;
    let starts = collect(&mut starts, tasks).await?;
    // No-ops: the start of the last is its end.
    let first = starts.iter().map(|start| start.at).min().context("no task ran")?;
    let last = starts.iter().map(|start| start.at).max().context("no task ran")?;
    Ok(vec![figure::rate("submit bulk", tasks, submit), figure::rate("drain", tasks, last - first)])
}

async fn idle<P: Peer>(peer: &mut P, tasks: usize) -> anyhow::Result<Figures> {
    let (recorder, mut starts) = Recorder::new();
    let _worker = peer.work(Part::Idle, recorder).await?;
    // The first shows that the worker is there; connections and plans are warm after it.
    peer.submit(Payload::now(tasks)).await?;
    starts.recv().await.context("the worker is gone")?;
    let mut millis = Vec::with_capacity(tasks);
    for number in 0..tasks {
        sleep(PAUSE).await;
        let submitted = Instant::now();
        peer.submit(Payload::now(number)).await?;
        let start = starts.recv().await.context("the worker is gone")?;
        ensure!(start.number == number, "task {} ran instead of {number}", start.number);
        // A task may start before its submit has returned.
        millis.push(start.at.saturating_duration_since(submitted).as_secs_f64() * 1000.0);
    }
    Ok(figure::percentiles("idle latency", millis))
}

async fn delayed<P: Peer>(peer: &mut P, tasks: usize) -> anyhow::Result<Figures> {
    let (recorder, mut starts) = Recorder::new();
    let _worker = peer.work(Part::Delayed, recorder).await?;
    peer.submit(Payload::now(tasks)).await?;
    starts.recv().await.context("the worker is gone")?;
    let begin = SystemTime::now() + LEAD;
    let due = |number| begin + SPREAD.mul_f64(number as f64 / tasks as f64);
    for bulk in bulks(tasks) {
        let bulk = bulk.map(|number| Payload::due_at(number, due(number))).collect();
        peer.submit_delayed(bulk).await?;
    }
    ensure!(SystemTime::now() < begin, "storing {tasks} delayed tasks took longer than {LEAD:?}");
    let starts = collect(&mut starts, tasks).await?;
    let millis: Vec<f64> = starts.iter().map(|start| start.late_millis).collect();
    let early = millis.iter().filter(|late| **late < 0.0).count();
    let mut figures = figure::percentiles("lateness", millis);
    figures.push(("early".to_owned(), early as f64, "tasks"));
    Ok(figures)
}

/// The numbers of the tasks of each call.
fn bulks(tasks: usize) -> impl Iterator<Item = Range<usize>> {
    (0..tasks).step_by(BULK).map(move |first| first..tasks.min(first + BULK))
}

/// The first start of each task; a task that runs twice counts once.
async fn collect(
    starts: &mut mpsc::UnboundedReceiver<Start>,
    tasks: usize,
) -> anyhow::Result<Vec<Start>> {
    let mut seen = vec![false; tasks];
    let mut first = Vec::with_capacity(tasks);
    while first.len() < tasks {
        let start = starts.recv().await.context("the worker is gone")?;
        // The warm-up has a number behind the last.
        if seen.get(start.number) == Some(&false) {
            seen[start.number] = true;
            first.push(start);
        }
    }
    Ok(first)
}
