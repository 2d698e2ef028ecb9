//! Nodes that have nothing to do write next to nothing.

use std::time::Duration;

use duly_testkit::report;
use duly_testkit::wait::observe_for;

use super::Cluster;

const WINDOW: Duration = Duration::from_secs(20);
/// The server tells what a connection did up to this much later, once the connection rests.
const TOLD: Duration = Duration::from_secs(12);
const MOST_PER_SECOND: f64 = 5.0;

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_cluster_hardly_writes() -> anyhow::Result<()> {
    let Some(cluster) = Cluster::with_ttl("10s", 3, &[]).await? else { return Ok(()) };
    let written = "SELECT tup_inserted + tup_updated + tup_deleted
        FROM pg_stat_database WHERE datname = current_database()";
    observe_for(TOLD).await;
    let before: i64 = cluster.ask(written).await?;
    observe_for(WINDOW).await;
    let rows: i64 = cluster.ask(written).await? - before;
    let per_second = rows as f64 / WINDOW.as_secs_f64();
    report::say(&format!("three idle nodes write {per_second:.1} rows a second"));
    // Each gives signs of life: none at all would mean that nothing was counted.
    assert!(rows > 0 && per_second < MOST_PER_SECOND, "{rows} rows in {WINDOW:?}");
    Ok(())
}
