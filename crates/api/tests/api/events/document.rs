//! docs/events.md names every kind of event, and no other.

use duly_core::event::EventKind;

const DOCUMENT: &str = include_str!("../../../../../docs/events.md");

#[test]
fn every_kind_is_documented_and_no_other() {
    let section = DOCUMENT.split("## Kinds").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<_> = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name).collect();
    assert_eq!(listed, EventKind::ALL.map(EventKind::name));
}
