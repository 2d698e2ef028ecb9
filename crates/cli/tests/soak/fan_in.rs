//! A task that waits for a thousand others is released once, a hundred times out of a hundred.

use super::TURN;
use super::fan_in_stores::{on_sqlite, on_three_nodes};

const RUNS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn the_child_of_many_tasks_is_released_once_on_sqlite() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    on_sqlite(RUNS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_child_of_many_tasks_is_released_once_on_three_nodes() -> anyhow::Result<()> {
    let _turn = TURN.lock().await;
    on_three_nodes(RUNS).await
}
