//! Answers of the database that reach a node seconds after the database has computed them: what
//! they say of its clock is old by then.

use std::time::Duration;

use duly_client::wire::SubmitRequest;
use duly_testkit::proxy::Proxy;
use duly_testkit::wait::observe_for;
use duly_testkit::{Node, Target, report};
use futures_util::future::try_join_all;
use rand::Rng as _;
use rand::rngs::StdRng;

use super::{Cluster, DULY, delayed};

/// How late answers are, each on a node of its own.
const LATE: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_millis(1_500), Duration::from_millis(2_500)];
/// Submits of each kind before that.
const WARM_UP: usize = 20;
/// How often answers are late and prompt again while a client submits, and for how long they are
/// prompt.
const ROUNDS: usize = 3;
const PROMPT: Duration = Duration::from_millis(500);
/// How late answers are in these rounds, in seconds.
const LATE_AT_TIMES: std::ops::Range<f64> = 1.0..3.0;
/// How many submits the client sends meanwhile, how often, and with which delays in milliseconds.
const SUBMITS: u32 = 120;
const PACE: Duration = Duration::from_millis(100);
const DELAYS: std::ops::Range<u64> = 100..4_000;

/// A node whose database is at the other end of a wire.
struct Wired {
    node: Node,
    line: Proxy,
    target: Target,
    // The node goes before the database does.
    _cluster: Cluster,
}

impl Wired {
    /// Nothing if there is no server to test on.
    async fn start(flags: &[&str]) -> anyhow::Result<Option<Self>> {
        let Some(cluster) = Cluster::with_ttl("10s", 0, &[]).await? else { return Ok(None) };
        let url = cluster.scratch.url();
        let (user, rest) = url.split_once('@').expect("an address names a user");
        let (address, database) = rest.split_once('/').expect("an address names a database");
        let line = Proxy::start().await?;
        line.lead_to(address)?;
        let store = format!("{user}@{}/{database}", line.address());
        let node = Node::start(DULY.as_ref(), "wired", &store, flags).await?;
        let target = Target::start(Duration::ZERO).await?;
        let wired = Self { node, line, target, _cluster: cluster };
        // Each of its connections has been used for a submit before answers are late: what it does
        // for the first time takes it several questions.
        for _ in 0..WARM_UP {
            wired.submit_plain().await?;
            wired.node.client.submit(&wired.target.task()).await?;
        }
        Ok(Some(wired))
    }

    async fn submit_plain(&self) -> anyhow::Result<()> {
        self.node.client.submit(&SubmitRequest::new("echo")).await?;
        Ok(())
    }

    /// Sends a submit with a delay while every answer of the database is late, and tells what was
    /// wrong with its start.
    async fn submit_behind_late_answers(&self, late: Duration) -> anyhow::Result<Vec<String>> {
        self.line.delay_answers(late);
        // With its answer the node has a reading of the database's clock that is late.
        self.submit_plain().await?;
        // Long enough for prompt answers to come in time for a start that is early by `late`.
        let delay = 2 * late + Duration::from_secs(1);
        let submit = delayed::submit(&self.node.client, &self.target, delay).await?;
        self.line.pass();
        delayed::find_early(&self.target, &[submit]).await
    }

    /// Sends submits with delays while answers are late at times, and tells what was wrong.
    async fn submit_all_the_time(&self, mut random: StdRng) -> anyhow::Result<Vec<String>> {
        let delays: Vec<_> = (0..SUBMITS).map(|_| random.random_range(DELAYS)).collect();
        let submits = (0..).zip(delays).map(|(number, delay)| async move {
            observe_for(PACE * number).await;
            delayed::submit(&self.node.client, &self.target, Duration::from_millis(delay)).await
        });
        let breaking = async {
            for _ in 0..ROUNDS {
                let late = Duration::from_secs_f64(random.random_range(LATE_AT_TIMES));
                self.line.delay_answers(late);
                observe_for(2 * late).await;
                self.line.pass();
                observe_for(PROMPT).await;
            }
        };
        let (submits, ()) = tokio::join!(try_join_all(submits), breaking);
        delayed::find_early(&self.target, &submits?).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_starts_no_delayed_task_early() -> anyhow::Result<()> {
    let nodes = LATE.map(|late| async move {
        let Some(wired) = Wired::start(&[]).await? else { return Ok(Vec::new()) };
        wired.submit_behind_late_answers(late).await
    });
    let early = try_join_all(nodes).await?.concat();
    assert!(early.is_empty(), "{early:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_late_at_times_start_no_delayed_task_early() -> anyhow::Result<()> {
    let random = report::seeded("answers_that_are_late_at_times_start_no_delayed_task_early")?;
    let Some(wired) = Wired::start(&[]).await? else { return Ok(()) };
    let early = wired.submit_all_the_time(random).await?;
    assert!(early.is_empty(), "{early:#?}");
    Ok(())
}

/// The bug that these tests are for: an answer that arrives late is taken for a clock that was set
/// back, and starts are computed from that.
#[cfg(feature = "planted-bugs")]
#[tokio::test(flavor = "multi_thread")]
async fn a_late_reading_taken_for_a_step_back_is_caught() -> anyhow::Result<()> {
    let flags = ["--planted-bug", "late-reading"];
    let Some(wired) = Wired::start(&flags).await? else { return Ok(()) };
    let early = wired.submit_behind_late_answers(LATE[1]).await?;
    let started = early.iter().any(|wrong| wrong.contains("started"));
    assert!(started, "the planted bug was not there: {early:?}");
    report::say(&format!("the planted bug is caught: {}", early.join("; ")));
    Ok(())
}
