//! What a list reads.

use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::state::Status;

use super::*;
use crate::postgres::task_state::test_rows::{DAY_MS, TestRows};

/// All pages of a list, followed to the end.
async fn found(rows: &TestRows, filter: &str, limit: u32) -> Vec<TaskId> {
    let (mut tasks, mut before) = (Vec::new(), None);
    loop {
        let filter = Filter::parse(filter, rows.noon).unwrap();
        let page = ListTasks { tenant: TenantName::default_tenant(), filter, before, limit };
        let page = list(&rows.store, page).await.unwrap();
        tasks.extend(page.tasks.iter().map(|task| task.id));
        before = page.next_before;
        if before.is_none() {
            return tasks;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_goes_from_day_to_day() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(40).await;
    let mut lanes = Vec::new();
    for number in 0..3 {
        lanes.push(rows.lane(&format!("type-{number}")).await);
    }
    let mut stored = Vec::new();
    // Some days have none.
    for day in (0..40).filter(|day| day % 5 != 2) {
        for number in 0..3_u32 {
            let lane = lanes[number as usize];
            stored.insert(0, rows.task(lane, day, number, Status::Success).await);
        }
    }
    for limit in [1, 7, 200] {
        assert_eq!(found(&rows, "", limit).await, stored, "{limit}");
    }
    let of_type: Vec<_> = stored.iter().skip(1).step_by(3).copied().collect();
    assert_eq!(found(&rows, "type:type-1", 4).await, of_type);
    // The same where there are too many lanes to read each.
    for number in 3..40 {
        rows.lane(&format!("type-{number}")).await;
    }
    for limit in [7, 200] {
        assert_eq!(found(&rows, "", limit).await, stored, "{limit}");
    }
}

/// How a statement is carried out, line by line.
async fn plan(rows: &TestRows, statement: &str, ids: Range<Uuid>, lanes: bool) -> Vec<String> {
    let filter = Filter::default();
    let tenant = TenantName::default_tenant();
    let terms = Terms::new(&tenant, &filter);
    let (most, lane) = (51_i64, vec![1_i32, 2]);
    let mut parameters = terms.parameters().to_vec();
    parameters.extend([&ids.start as Parameter<'_>, &ids.end, &most]);
    if lanes {
        parameters.push(&lane);
    }
    let mut client = rows.store.pool.get().await.unwrap();
    let snapshot = rows.store.pool.snapshot(&mut client, &tenant).await.unwrap();
    let rows = snapshot.query(&format!("EXPLAIN {statement}"), &parameters).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_planned_for_its_days_alone() {
    let Some(rows) = TestRows::new().await else { return };
    rows.days(40).await;
    let midnight = rows.noon.millis() - DAY_MS / 2;
    let ids = |days| {
        let end = midnight + days * DAY_MS;
        crate::postgres::days::first_of(midnight)..crate::postgres::days::first_of(end)
    };
    for (name, source, lanes) in [("all", ALL, false), ("lanes", OF_LANES, true)] {
        let statement = format!("{} ORDER BY looked.id DESC", judging(name, source));
        for days in [1, 2, 30] {
            let plan = plan(&rows, &statement, ids(days), lanes).await;
            let on_tasks = plan.iter().filter(|line| line.contains(" on task_2030"));
            assert_eq!(on_tasks.count(), usize::try_from(days).unwrap(), "{plan:#?}");
            let seq = plan.iter().any(|line| line.contains("Seq Scan"));
            assert!(!seq, "{plan:#?}");
            let sorts = plan.iter().filter(|line| line.contains("Sort")).count();
            assert!(lanes || sorts == 0, "what lies in order is not sorted: {plan:#?}");
        }
    }
}
