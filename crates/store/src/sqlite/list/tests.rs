//! How SQLite would carry out the statements of lists, as it says itself.

use rusqlite::Connection;

use super::*;
use crate::sqlite::{dead_letters, migrate, reader};

fn connection() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::up(&mut connection).unwrap();
    filter::teach(&connection).unwrap();
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
        (all(), "SEARCH task USING PRIMARY KEY (id>? AND id<?)"),
        (failed(), "SEARCH dlq USING COVERING INDEX dlq_task (task>? AND task<?)"),
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
    let plan = plan(&reader::one());
    assert!(plan[0].starts_with("SEARCH task USING PRIMARY KEY (id=?)"), "{plan:#?}");
    assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{plan:#?}");
}

#[test]
fn groups_are_counted_lane_by_lane() {
    let counted = plan(&dead_letters::counted());
    assert!(counted[0].contains("(tenant=?)"), "{counted:#?}");
    assert!(counted[1].contains("USING COVERING INDEX dlq_group (lane=?)"), "{counted:#?}");
    assert!(counted.iter().all(|step| !step.starts_with("SCAN")), "{counted:#?}");
    let sample = plan(&dead_letters::sample());
    assert!(sample[0].contains("dlq_group (lane=? AND error_group=? AND failed_at=?)"));
    assert!(sample.iter().all(|step| !step.contains("B-TREE")), "{sample:#?}");
}
