//! How SQLite would carry out the statements of lists, as it says itself.

use rusqlite::Connection;

use super::*;
use crate::sqlite::{dead_letters, migrate, reader};

fn connection() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::up(&mut connection).unwrap();
    filter::register_functions(&connection).unwrap();
    connection
}

fn plan(text: &str) -> Vec<String> {
    let connection = connection();
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
    let rows = statement.raw_query().mapped(|row| row.get("detail"));
    rows.map(|detail| detail.unwrap()).collect()
}

#[test]
fn pages_read_one_bounded_range_in_its_order() {
    for (text, range) in [
        (all("0"), "SEARCH task USING PRIMARY KEY (id>? AND id<?)"),
        (failed("0"), "SEARCH dlq USING COVERING INDEX dlq_task (task>? AND task<?)"),
        (
            dead_letters::newest(),
            "SEARCH dlq USING PRIMARY KEY (failed_at>? AND (failed_at,task)<(?,?))",
        ),
    ] {
        let plan = plan(&text);
        assert_eq!(plan[0], range, "{plan:#?}");
        let sound = |step: &String| !step.contains("B-TREE") && !step.starts_with("SCAN");
        assert!(plan.iter().all(sound), "{plan:#?}");
        assert!(plan[1].starts_with("SEARCH lane USING INTEGER PRIMARY KEY"), "{plan:#?}");
    }
}

#[test]
fn a_task_is_fetched_by_its_key() {
    for text in [reader::one(), filter::verdict_on_one()] {
        let plan = plan(&text);
        assert!(plan[0].starts_with("SEARCH task USING PRIMARY KEY (id=?)"), "{plan:#?}");
        let sound = |step: &String| !step.starts_with("SCAN");
        assert!(plan.iter().all(sound), "{plan:#?}");
    }
}

#[test]
fn the_few_that_wait_are_found_by_their_lanes() {
    for (text, range) in [
        (few::WAITING, "SEARCH due USING PRIMARY KEY (lane=?)"),
        (few::LANES, "SEARCH lane USING COVERING INDEX sqlite_autoindex_lane_1 (tenant=?)"),
    ] {
        assert_eq!(plan(text), [range]);
    }
}

#[test]
fn groups_are_counted_from_the_last_failure_on() {
    for needs_task in [false, true] {
        let plan = plan(&dead_letters::last(needs_task));
        assert_eq!(plan[0], "SEARCH dlq USING PRIMARY KEY (failed_at>? AND failed_at<?)");
        let sound = |step: &String| !step.contains("B-TREE") && !step.starts_with("SCAN");
        assert!(plan.iter().all(sound), "{plan:#?}");
    }
}
