//! Days that are dropped, and days that are not.

use std::collections::BTreeMap;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{Cutoffs, Expiry as _, Sweep};
use duly_core::state::Status;

use crate::postgres::task_state::test_rows::TestRows;

/// Sweeps what ended before noon of this day; how many each call has deleted.
async fn sweep(rows: &TestRows, day: i64) -> Vec<u32> {
    let before = Some(rows.noon_of(day));
    let cutoffs = Cutoffs { success: before, cancelled: before, failed: None };
    sweep_all(rows, Sweep { cutoffs, ..Sweep::default() }).await
}

async fn sweep_all(rows: &TestRows, mut sweep: Sweep) -> Vec<u32> {
    let mut calls = Vec::new();
    loop {
        let swept = rows.store.sweep(sweep.clone()).await.unwrap();
        calls.push(swept.deleted);
        assert!(swept.next.is_none_or(|next| Some(next) > sweep.after), "it goes forward");
        sweep.after = swept.next;
        if sweep.after.is_none() {
            return calls;
        }
    }
}

/// How many days there are.
async fn days(rows: &TestRows) -> i64 {
    rows.number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'duly.task'::regclass").await
}

async fn left(rows: &TestRows, table: &str) -> i64 {
    rows.number(&format!("SELECT count(*) FROM duly.{table}")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_which_nothing_is_kept_is_dropped() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(4).await;
    let lane = rows.lane("a").await;
    for (day, tasks) in [(0, 5), (1, 3)] {
        for number in 0..tasks {
            let status = if number == 0 { Status::Cancelled } else { Status::Success };
            rows.task(lane, day, number, status).await;
        }
    }
    rows.run(
        "INSERT INTO duly.log (task, epoch, start, at, run, attempt, text)
                 SELECT id, 1, 0, 0, 1, 1, 'x' FROM duly.task;
             INSERT INTO duly.attempt (task, epoch, run, attempt, started_at, ended_at, error)
                 SELECT id, 1, 1, 1, 0, 0, 'x' FROM duly.task;
             INSERT INTO duly.progress (task, at, done) SELECT id, 0, 0 FROM duly.task",
    )
    .await;
    let before = days(&rows).await;
    let calls = sweep(&rows, 1).await;
    assert_eq!(calls[0], 5, "the whole first day");
    assert_eq!(days(&rows).await, before - 1);
    for table in ["task", "log", "attempt", "progress"] {
        assert_eq!(left(&rows, table).await, 3, "{table}: those of the second day are kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_which_something_is_kept_is_swept_page_by_page() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(6).await;
    let lane = rows.lane("a").await;
    let mut kept = Vec::new();
    for (day, status) in [(0, Status::Pending), (1, Status::Running), (2, Status::Failed)] {
        rows.task(lane, day, 1, Status::Success).await;
        kept.push(rows.task(lane, day, 2, status).await);
    }
    rows.bury_failed().await;
    // This one ended long after it was due.
    kept.push(rows.task(lane, 3, 1, Status::Success).await);
    let late = rows.noon_of(5).millis();
    let last = kept[3];
    let update = format!("UPDATE duly.task SET finished_at = {late} WHERE id = '{last}'");
    rows.run(&update).await;
    let before = days(&rows).await;
    assert_eq!(sweep(&rows, 5).await.iter().sum::<u32>(), 3);
    assert_eq!(days(&rows).await, before - 1, "the fifth day is empty");
    assert_eq!(left(&rows, "task").await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_keeps_its_tasks_keeps_their_days() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(6).await;
    let (lane, own) = (rows.lane("a").await, rows.lane_of("acme", "a").await);
    for day in [0, 1, 2] {
        rows.task(lane, day, 1, Status::Success).await;
    }
    rows.task(own, 1, 2, Status::Success).await;
    rows.task(own, 2, 2, Status::Failed).await;
    rows.bury_failed().await;
    let before = days(&rows).await;
    let (success, kept) = (Some(rows.noon_of(5)), Cutoffs::default());
    let usual = Cutoffs { success, ..kept };
    let acme = TenantName::new("acme").unwrap();
    let with_own = |cutoffs, own| Sweep {
        cutoffs,
        tenants: BTreeMap::from([(acme.clone(), own)]).into(),
        after: None,
    };
    assert_eq!(sweep_all(&rows, with_own(usual, kept)).await.iter().sum::<u32>(), 3);
    assert_eq!(left(&rows, "task").await, 2, "those of acme are kept");
    assert_eq!(days(&rows).await, before - 3, "the first day, and two without tasks");
    let only_failed = Cutoffs { failed: success, ..kept };
    let calls = sweep_all(&rows, with_own(kept, only_failed)).await;
    assert_eq!(calls.iter().sum::<u32>(), 1);
    assert_eq!(days(&rows).await, before - 4, "the third day goes as a whole");
    assert_eq!(left(&rows, "dlq").await, 0);
    let calls = sweep_all(&rows, with_own(kept, usual)).await;
    assert_eq!((calls.iter().sum::<u32>(), days(&rows).await), (1, before - 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_in_use_is_swept_page_by_page() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(3).await;
    let lane = rows.lane("a").await;
    for number in 0..5 {
        rows.task(lane, 0, number, Status::Success).await;
    }
    let before = days(&rows).await;
    let mut client = rows.store.pool.get().await.unwrap();
    let looking = client.transaction().await.unwrap();
    looking.batch_execute("SELECT count(*) FROM duly.task").await.unwrap();
    assert_eq!(sweep(&rows, 2).await.iter().sum::<u32>(), 5);
    assert_eq!(days(&rows).await, before);
    looking.rollback().await.unwrap();
    sweep(&rows, 2).await;
    assert_eq!(days(&rows).await, before - 2, "both were empty");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_tasks_make_a_small_batch() {
    let Some(rows) = TestRows::new().await else { return };
    let lane = rows.lane("a").await;
    let ids: Vec<TaskId> = {
        let mut ids = Vec::new();
        for number in 0..10 {
            ids.push(rows.task(lane, 0, number, Status::Success).await);
        }
        ids
    };
    rows.run(
        "INSERT INTO duly.log (task, epoch, start, at, run, attempt, text)
             SELECT id, 1, 0, 0, 1, 1, repeat('x', 1572864) FROM duly.task",
    )
    .await;
    let success = Some(rows.noon.plus(Duration::from_secs(1)));
    let cutoffs = Cutoffs { success, ..Cutoffs::default() };
    let mut sweep = Sweep { cutoffs, ..Sweep::default() };
    let mut pages = Vec::new();
    loop {
        let swept = rows.store.sweep(sweep.clone()).await.unwrap();
        pages.push((swept.deleted, swept.next));
        sweep.after = swept.next;
        if sweep.after.is_none() {
            break;
        }
    }
    let expected = [(3, Some(ids[2])), (3, Some(ids[5])), (3, Some(ids[8])), (1, None)];
    assert_eq!(pages, expected, "1.5 MiB each");
}
