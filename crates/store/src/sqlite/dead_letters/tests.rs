//! What an answer about many dead letters costs.

use duly_core::error_group::ErrorGroup;
use duly_core::filter::Filter;
use duly_core::limits::DEAD_GROUP_ROWS;
use duly_core::name::TenantName;
use duly_core::ports::store::{DeadGroups, GroupDead};
use duly_core::task::Failure;
use rusqlite::params;

use super::*;
use crate::sqlite::migrate;
use crate::sqlite::row::encode_failure;

/// A file in which so many tasks of each of two tenants have failed, in turns, all with one error.
fn file(each: u32) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::up(&mut connection).unwrap();
    filter::register_functions(&connection).unwrap();
    let lanes = "INSERT INTO lane (id, tenant, queue, type)
        VALUES (0, 'default', 'mail', 'email'), (1, 'other', 'mail', 'email')";
    connection.execute(lanes, []).unwrap();
    let error = Failure::new("BROKEN", "it broke");
    let number = "WITH RECURSIVE number (n) AS
        (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?1)";
    let tasks = format!(
        "{number} INSERT INTO task (id, status, epoch, lane, rank, run_at, created_at, finished_at,
            run, charged, retries, losses, error, payload)
         SELECT CAST(printf('%016d', n) AS BLOB), 4, 1, n % 2, 4, n, n, n, 1, 1, 0, 0, ?2, 'null'
         FROM number"
    );
    connection.execute(&tasks, params![2 * each, encode_failure(&error)]).unwrap();
    let dead = "INSERT INTO dlq (failed_at, task, lane, error_group)
        SELECT finished_at, id, lane, ? FROM task";
    connection.execute(dead, [ErrorGroup::of(&error).to_bits()]).unwrap();
    connection
}

fn ask(connection: &Connection, filter: &str) -> DeadGroups {
    let filter = Filter::parse_dead(filter, Timestamp::from_millis(0)).unwrap();
    let which = GroupDead { tenant: TenantName::default_tenant(), filter, limit: 100 };
    groups(connection, &which).unwrap()
}

#[test]
fn groups_count_the_last_failures_and_say_that_there_are_more() {
    let half = DEAD_GROUP_ROWS / 2;
    let all = ask(&file(half), "");
    assert_eq!((all.groups[0].count, all.scanned, all.partial), (half.into(), half, false));
    // Those of others are not told, but to pass them by costs as much.
    let some = ask(&file(half + 1), "");
    assert_eq!((some.groups[0].count, some.scanned, some.partial), (half.into(), half, true));
    assert_eq!(some.groups[0].last_failed_at, Timestamp::from_millis(i64::from(2 * half)));
    assert_eq!(some.groups[0].first_failed_at, Timestamp::from_millis(2));
}

#[test]
fn terms_that_need_the_task_end_it_earlier() {
    let file = file(TASKS);
    for (filter, counted) in
        [("error:broke", TASKS / 2), ("error:else", 0), ("label.k:v", 0), ("worker:w", 0)]
    {
        let DeadGroups { groups, scanned, partial } = ask(&file, filter);
        let count = groups.iter().map(|group| group.count).sum::<u64>();
        assert_eq!((count, scanned, partial), (counted.into(), TASKS / 2, true), "{filter}");
    }
    for filter in
        ["queue:none", "type:none", "group:0123456789abcdef", "until:1970-01-01T00:00:00Z"]
    {
        let DeadGroups { groups, partial, .. } = ask(&file, filter);
        assert!(groups.is_empty() && !partial, "{filter}");
    }
}
