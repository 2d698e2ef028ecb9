//! Three nodes do three times the work of one while tasks wait.

use duly_client::wire::{PauseRequest, SubmitRequest};
use duly_testkit::report;

use super::TURN;
use super::harness::{Cluster, submit_all};

/// Tasks for each node, of a tenth of a second, fifty at a time: 8 s.
const TASKS: usize = 4_000;
const WANTED: f64 = 2.8;
/// The best round counts: a busy machine makes both slower, never faster.
const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_do_nearly_three_times_the_work_of_one() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    let (mut one, mut three) = (0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        let (Some(alone), Some(together)) =
            (tasks_per_second(1).await?, tasks_per_second(3).await?)
        else {
            return Ok(());
        };
        (one, three) = (one.max(alone), three.max(together));
        report::say(&format!("{one:.0} tasks a second on one node, {three:.0} on three"));
        if three >= WANTED * one {
            return Ok(());
        }
    }
    anyhow::bail!("{three:.0} is not {WANTED} times {one:.0}")
}

async fn tasks_per_second(nodes: usize) -> anyhow::Result<Option<f64>> {
    let flags = ["--concurrency", "50"];
    let Some(cluster) = Cluster::with_ttl("2s", nodes, &flags).await? else { return Ok(None) };
    let client = cluster.client();
    // Only a known queue can be paused.
    submit_all(client, &[SubmitRequest::new("echo")]).await?;
    cluster.drained().await?;
    client.pause_queue("default", &PauseRequest::default()).await?;
    let payload = serde_json::value::to_raw_value(&serde_json::json!({"seconds": 0.1}))?;
    let task = SubmitRequest { payload: Some(payload), ..SubmitRequest::new("sleep") };
    for _ in 0..nodes {
        submit_all(client, &vec![task.clone(); TASKS]).await?;
    }
    client.resume_queue("default").await?;
    cluster.drained().await?;
    // By the store's clock, from the first grant to the last outcome.
    let times = "SELECT max(finished_at) - min(granted_at) FROM duly.task
        WHERE granted_at > (SELECT min(granted_at) FROM duly.task)";
    let took: i64 = cluster.ask(times).await?;
    Ok(Some((nodes * TASKS) as f64 / (took as f64 / 1e3)))
}
