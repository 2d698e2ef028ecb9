//! A node that the system does not let run for some seconds, in the middle of submits: the
//! answers of the database wait for it, and tell of a time that is long past.

use std::time::Duration;

use duly_client::wire::SubmitRequest;
use duly_testkit::wait::observe_for;
use duly_testkit::{Node, Target, report};
use futures_util::future::{join_all, try_join_all};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::Signal;

use super::{Cluster, delayed};

/// Nodes that stall side by side, each on a database of its own.
const NODES: usize = 4;
/// Stalls in all; `DULY_STALLS` asks for another number.
const STALLS: usize = 12;
/// Submits that are under way when the node stops.
const UNDER_WAY: usize = 4;
/// Milliseconds between these submits and the stop.
const LATER_MS: std::ops::Range<f64> = 1.5..4.5;
/// How long the node stands still, in seconds.
const STALL: std::ops::Range<f64> = 2.5..4.0;
/// The last part of a stall, in which a client sends its submit.
const LAST_PART: Duration = Duration::from_millis(50);
const DELAY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stalls_starts_no_delayed_task_early() -> anyhow::Result<()> {
    let mut random = report::seeded("a_node_that_stalls_starts_no_delayed_task_early")?;
    let rounds = report::number("DULY_STALLS", STALLS)?.div_ceil(NODES);
    let stalls = (0..NODES).map(|_| {
        let random = StdRng::from_rng(&mut random);
        async move {
            // The usual TTL: the node is not declared dead.
            let Some(cluster) = Cluster::with_ttl("10s", 1, &[]).await? else { return Ok(None) };
            anyhow::Ok(Some(stall_often(&cluster.nodes[0], rounds, random).await?))
        }
    });
    let found: Vec<_> = try_join_all(stalls).await?.into_iter().flatten().collect();
    let early: Vec<_> = found.iter().flatten().filter(|round| !round.is_empty()).collect();
    let all: usize = found.iter().map(Vec::len).sum();
    report::say(&format!("{all} stalls, {} with an early start", early.len()));
    assert!(early.is_empty(), "{early:#?}");
    Ok(())
}

/// Stalls a node so often; what was wrong each time.
async fn stall_often(
    node: &Node,
    rounds: usize,
    mut random: StdRng,
) -> anyhow::Result<Vec<Vec<String>>> {
    let target = Target::start(Duration::ZERO).await?;
    let mut found = Vec::new();
    for _ in 0..rounds {
        // Connections are open, as those of a busy client are.
        let plain = SubmitRequest::new("echo");
        try_join_all((0..UNDER_WAY).map(|_| node.client.submit(&plain))).await?;
        found.push(stall_once(node, &target, &mut random).await?);
    }
    Ok(found)
}

/// Stalls the node in the middle of submits, sends a submit with a delay shortly before the stall
/// ends and one right after, and tells what was wrong.
async fn stall_once(
    node: &Node,
    target: &Target,
    random: &mut StdRng,
) -> anyhow::Result<Vec<String>> {
    let later = Duration::from_secs_f64(random.random_range(LATER_MS) / 1e3);
    let stall = Duration::from_secs_f64(random.random_range(STALL));
    let under_way = async {
        let plain = SubmitRequest::new("echo");
        // Whether they are answered does not matter: they only have the node ask the database.
        drop(join_all((0..UNDER_WAY).map(|_| node.client.submit(&plain))).await);
        anyhow::Ok(())
    };
    let stop = async {
        observe_for(later).await;
        node.signal(Signal::STOP)?;
        observe_for(stall - LAST_PART).await;
        let go_on = async {
            observe_for(LAST_PART).await;
            node.signal(Signal::CONT)?;
            delayed::submit(&node.client, target, DELAY).await
        };
        let while_it_stands = delayed::submit(&node.client, target, DELAY);
        let (one, other) = tokio::try_join!(while_it_stands, go_on)?;
        anyhow::Ok([one, other])
    };
    let ((), submits) = tokio::try_join!(under_way, stop)?;
    delayed::find_early(target, &submits).await
}
