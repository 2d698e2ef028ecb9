//! Events: what a sink for all outcomes costs, how soon a reader hears of an outcome, and what many open
//! streams cost.

mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use async_trait::async_trait;
use duly_core::event::{Kinds, SinkName, Subscription};
use duly_core::ports::event_sink::{Delivery, Details, EventSink, NotTaken};
use duly_store::limit::PAYLOAD;
use tokio::sync::Notify;

use self::stream::Stream;
use super::ROUNDS;
use super::figures::{Figure, Target, percentiles};
use super::http::post;
use super::memory::resident;
use super::rest::Server;
use super::run::Run;
use super::store_site::StoreSite;
use super::world::{Counter, World};

pub(super) const STEPS: usize = ROUNDS + 2;

/// Tasks whose outcomes a reader hears of, one after the other.
const HEARD: usize = 2_000;
/// From one of them to the next.
const PAUSE: Duration = Duration::from_millis(2);
/// Open streams.
const STREAMS: usize = 1_000;

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    sinks(run).await?;
    latency(run).await?;
    streams(run).await
}

/// A drain without a sink, and one with a sink for all outcomes.
async fn sinks(run: &mut Run) -> anyhow::Result<()> {
    let tasks = run.tasks;
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    let mut delivery = Duration::MAX;
    for round in 1..=ROUNDS {
        run.step(&format!("events: {tasks} outcomes without and with a sink, {round} of {ROUNDS}"));
        without = without.min(drain(run.new_site("no-sink").await?, tasks, None).await?.0);
        let sink = Arc::new(Tally::new(tasks));
        let times = drain(run.new_site("sink").await?, tasks, Some(sink)).await?;
        with = with.min(times.0);
        delivery = delivery.min(times.1);
    }
    let rate = |name, time| Figure::rate(name, tasks, time).compare_rate(tasks, without);
    run.add(rate("events: drain with a sink", with).must(Target::Ratio(0.75)));
    run.add(rate("events: delivery to the sink", delivery).must(Target::Ratio(0.75)));
    Ok(())
}

/// Drains a backlog: the time until all outcomes are committed, and until the sink has received them.
async fn drain(
    site: StoreSite,
    tasks: usize,
    sink: Option<Arc<Tally>>,
) -> anyhow::Result<(Duration, Duration)> {
    let world = World::open(site).await?;
    world.submit(tasks, 0.0).await?;
    if let Some(sink) = sink.clone() {
        let name = SinkName::new("bench").expect("a valid name");
        let outcomes = vec![Subscription::to(Kinds::OUTCOMES)];
        world.engine.add_sink(name, outcomes, sink).await?;
    }
    let counter = Counter::new(tasks);
    let start = Instant::now();
    let worker = world.work(counter.clone()).await?;
    counter.done().await;
    worker.stop(tasks).await?;
    let drained = start.elapsed();
    if let Some(sink) = sink {
        sink.complete().await;
    }
    let delivered = start.elapsed();
    world.remove().await?;
    Ok((drained, delivered))
}

/// A sink that counts.
struct Tally {
    left: AtomicUsize,
    complete: Notify,
}

impl Tally {
    fn new(tasks: usize) -> Self {
        Self { left: AtomicUsize::new(tasks), complete: Notify::new() }
    }

    async fn complete(&self) {
        self.complete.notified().await;
    }
}

#[async_trait]
impl EventSink for Tally {
    fn details(&self) -> Details {
        Details::Ids
    }

    async fn take(&self, events: &[Delivery]) -> Result<(), NotTaken> {
        // Nothing is delivered twice here: no relay ends.
        if self.left.fetch_sub(events.len(), Ordering::Relaxed) == events.len() {
            self.complete.notify_one();
        }
        Ok(())
    }
}

/// From the commit of an outcome until a reader has heard of it, through the node that runs the tasks, and
/// through another one where there can be one.
async fn latency(run: &mut Run) -> anyhow::Result<()> {
    run.step(&format!("events: {HEARD} outcomes, heard over HTTP"));
    let site = run.new_site("heard").await?;
    let mut server = Server::start(&site, true).await?;
    let millis = hear(&mut server, None).await?;
    add_latency(run, "events: outcome to reader", millis);
    let is_shared = run.per_store(false, true);
    if is_shared {
        let reading = Server::start(&site, false).await?;
        let millis = hear(&mut server, Some(&reading)).await?;
        add_latency(run, "events: outcome to reader of another node", millis);
        reading.stop().await?;
    }
    server.stop().await?;
    site.remove().await
}

fn add_latency(run: &mut Run, name: &str, millis: Vec<f64>) {
    let [p50, p99, max] = percentiles(name, 99, millis);
    let (p50, p99) = (p50.must(Target::AtMost(50.0)), p99.must(Target::AtMost(300.0)));
    run.figures.extend([p50, p99, max]);
}

/// Submits tasks one by one, and hears of their outcomes; how late, in milliseconds.
async fn hear(server: &mut Server, reading: Option<&Server>) -> anyhow::Result<Vec<f64>> {
    let address = reading.unwrap_or(server).address();
    let query = "topics=events&filter=event:task.succeeded";
    let mut stream = Stream::open(address, query).await?;
    let request = post("/tasks", &format!(r#"{{"type":"echo","payload":{PAYLOAD}}}"#));
    let mut connection = server.connect().await?;
    let submits = async {
        for _ in 0..HEARD {
            connection.send(&request).await?;
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(())
    };
    let hears = async {
        let mut millis = Vec::with_capacity(HEARD);
        while millis.len() < HEARD {
            millis.push(stream.next_delay().await?);
        }
        anyhow::Ok(millis)
    };
    let (submitted, millis) = tokio::join!(submits, hears);
    submitted?;
    millis
}

/// The memory of many open streams, and a drain beside them.
async fn streams(run: &mut Run) -> anyhow::Result<()> {
    let tasks = run.tasks;
    run.step(&format!("events: {tasks} tasks drained without and beside {STREAMS} open streams"));
    let site = run.new_site("streams").await?;
    let mut server = Server::start(&site, true).await?;
    let process = server.id().context("the server has ended")?;
    let (mut alone, mut beside) = (Duration::MAX, Duration::MAX);
    let mut memory = 0.0_f64;
    for _ in 0..ROUNDS {
        alone = alone.min(drain_over_http(&mut server, tasks).await?);
        let before = resident(process)?;
        let mut open = Vec::with_capacity(STREAMS);
        for _ in 0..STREAMS {
            open.push(Stream::open(server.address(), "topics=stats").await?.read_on());
        }
        // Later rounds use again what earlier ones have left.
        memory = memory.max(resident(process)? - before);
        beside = beside.min(drain_over_http(&mut server, tasks).await?);
    }
    let name = format!("events: memory of {STREAMS} streams");
    run.add(Figure::new(&name, memory, "MB").must(Target::AtMost(30.0)));
    let figure = Figure::rate(&format!("events: drain beside {STREAMS} streams"), tasks, beside);
    run.add(figure.compare_rate(tasks, alone).must(Target::Ratio(0.9)));
    server.stop().await?;
    site.remove().await
}

/// Submits tasks to a paused queue, and drains it.
async fn drain_over_http(server: &mut Server, tasks: usize) -> anyhow::Result<Duration> {
    let mut connection = server.connect().await?;
    connection.send(&post("/queues/default/pause", "{}")).await?;
    let item = format!(r#"{{"type":"echo","payload":{PAYLOAD}}}"#);
    let body = format!("[{}]", vec![item; super::BATCH].join(","));
    let batch = post("/tasks/batch", &body);
    server.load(super::rest::BATCH_CONNECTIONS, tasks / super::BATCH, batch).await?;
    let start = Instant::now();
    connection.send(&post("/queues/default/resume", "{}")).await?;
    let look = super::http::get("/queues/default/stats");
    loop {
        let answer = connection.send(&look).await?;
        let queue: serde_json::Value = serde_json::from_slice(answer)?;
        let count = |name: &str| queue[name]["count"].as_u64();
        if (count("waiting"), count("running")) == (Some(0), Some(0)) {
            return Ok(start.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
