use super::*;
use crate::limits::WORKFLOW_TASKS;

fn needed(keys: &[&str]) -> Vec<Needed> {
    keys.iter().map(|key| Needed { key: (*key).to_owned(), on: Condition::Success }).collect()
}

fn plan(tasks: &[(&str, &[&str])]) -> Result<Plan, Vec<Flaw>> {
    let tasks: Vec<_> = tasks.iter().map(|(key, parents)| (*key, needed(parents))).collect();
    Plan::new(tasks.iter().map(|(key, own)| (*key, own.as_slice())), WORKFLOW_TASKS)
}

#[test]
fn parents_come_first() {
    let tasks = [("d", &["b", "c"][..]), ("c", &["a"]), ("b", &["a"]), ("a", &[])];
    let order = plan(&tasks).unwrap().order;
    let place = |task| order.iter().position(|it| *it == task).unwrap();
    for (child, parent) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        assert!(place(parent) < place(child), "{order:?}");
    }
}

#[test]
fn tasks_that_may_start_together_keep_their_order() {
    let roots = plan(&[("a", &[]), ("b", &[]), ("c", &[])]).unwrap();
    assert_eq!(roots.order, [0, 1, 2]);
    let fan = plan(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]).unwrap();
    assert_eq!(fan.order, [0, 1, 2, 3]);
}

#[test]
fn every_flaw_says_where_it_is() {
    let tasks = [("a", &["a", "x", "b", "b"][..]), ("b", &[])];
    let unknown = Flaw::UnknownKey { task: 0, edge: 1, key: "x".to_owned() };
    let twice = Flaw::DuplicateEdge { task: 0, edge: 3, key: "b".to_owned() };
    assert_eq!(plan(&tasks).unwrap_err(), [Flaw::SelfEdge { task: 0, edge: 0 }, unknown, twice]);
}

#[test]
fn a_cycle_is_told_as_a_path() {
    let tasks = [("a", &["c"][..]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"])];
    let flaws = plan(&tasks).unwrap_err();
    let [Flaw::Cycle { path, .. }] = flaws.as_slice() else { panic!("{flaws:?}") };
    assert_eq!((path.len(), path.first()), (4, path.last()));
    let text = flaws[0].to_string();
    assert!(text.contains("a -> b") || text.contains("b -> c"), "{text}");
}

#[test]
fn a_workflow_may_be_as_deep_as_it_is_large() {
    let keys: Vec<_> = (0..WORKFLOW_TASKS).map(|key| key.to_string()).collect();
    let mut parents: Vec<_> =
        (0..keys.len()).map(|at| needed(&[keys[at.saturating_sub(1)].as_str()])).collect();
    parents[0].clear();
    let tasks = |parents: &[Vec<Needed>]| {
        Plan::new(
            keys.iter().map(String::as_str).zip(parents.iter().map(Vec::as_slice)),
            WORKFLOW_TASKS,
        )
    };
    assert!(tasks(&parents).unwrap().order.is_sorted());
    parents[0] = needed(&[keys.last().unwrap()]);
    let flaws = tasks(&parents).unwrap_err();
    let [Flaw::Cycle { path, .. }] = flaws.as_slice() else { panic!("no cycle was found") };
    assert_eq!(path.len(), WORKFLOW_TASKS + 1);
}

#[test]
fn limits_hold() {
    let keys: Vec<_> = (0..3).map(|key| key.to_string()).collect();
    let few = Plan::new(keys.iter().map(|key| (key.as_str(), &[][..])), 2);
    assert_eq!(few.unwrap_err(), [Flaw::TooManyTasks { count: 3, limit: 2 }]);
    let many: Vec<_> = (0..=CHILDREN).map(|key| (format!("k{key}"), needed(&["root"]))).collect();
    let tasks = many.iter().map(|(key, own)| (key.as_str(), own.as_slice()));
    let crowd = Plan::new([("root", &[][..])].into_iter().chain(tasks), CHILDREN + 2);
    let count = CHILDREN + 1;
    assert_eq!(crowd.unwrap_err(), [Flaw::TooManyChildren { task: 0, count }]);
}
