//! Each rule of the checker catches what it is there for.

use std::time::{Duration, Instant};

use super::*;

const ID: &str = "01920000-0000-7000-8000-000000000000";
const OTHER: &str = "01920000-0000-7000-8000-000000000001";

fn view(id: &str) -> TaskView {
    let json = serde_json::json!({
        "taskId": id, "type": "http", "queue": "default", "status": "SUCCESS", "priority": 5,
        "runAt": "2030-01-31T08:01:00.000Z", "createdAt": "2030-01-31T08:00:00.000Z",
        "startedAt": null, "finishedAt": "2030-01-31T08:01:00.120Z", "run": 1, "attempt": 1,
        "retries": 3, "epoch": 2, "losses": 1, "worker": null, "payload": {}, "result": null,
        "error": null, "labels": {}, "dependencies": [], "workflowId": null, "scheduleId": null,
        "warnings": []
    });
    serde_json::from_str(&json.to_string()).unwrap()
}

fn execution(epoch: u32, started: Instant) -> Execution {
    Execution {
        task: ID.parse().unwrap(),
        epoch,
        attempt: 1,
        idempotency_key: format!("{ID}-1"),
        started,
        ended: None,
    }
}

fn sound() -> (Evidence, Instant) {
    let read = Instant::now() + Duration::from_secs(60);
    let earlier = |seconds| read - Duration::from_secs(seconds);
    let task = ID.parse().unwrap();
    let evidence = Evidence {
        acked: [("key".to_owned(), Ack { task, generation: 1 })].into(),
        resubmitted: [("key".to_owned(), task)].into(),
        stored: vec![view(ID)],
        seen: Seen { outcomes: [(task, (read, view(ID)))].into(), ..Seen::default() },
        executions: vec![execution(1, earlier(2)), execution(2, earlier(1))],
    };
    (evidence, read)
}

fn only(evidence: &Evidence) -> String {
    let found = violations(evidence);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn a_sound_run_is_not_blamed() {
    assert_eq!(violations(&sound().0), Vec::<String>::new());
}

#[test]
fn a_lost_task_is_caught() {
    let (mut evidence, _) = sound();
    evidence.seen.lost.push(ID.parse().unwrap());
    assert!(only(&evidence).contains("is lost"));
    let (mut evidence, _) = sound();
    evidence.stored.clear();
    assert!(violations(&evidence).iter().any(|one| one.contains("is lost")));
}

#[test]
fn an_invented_task_is_caught() {
    let (mut evidence, _) = sound();
    evidence.stored.push(view(OTHER));
    assert!(violations(&evidence).iter().any(|one| one.contains("no submit was answered")));
}

#[test]
fn a_key_that_leads_to_two_tasks_is_caught() {
    let (mut evidence, _) = sound();
    evidence.resubmitted.insert("key".to_owned(), OTHER.parse().unwrap());
    assert!(only(&evidence).contains("and then to"));
}

#[test]
fn an_outcome_that_changes_is_caught() {
    let (mut evidence, _) = sound();
    for (_, outcome) in evidence.seen.outcomes.values_mut() {
        outcome.epoch = 1;
    }
    assert!(only(&evidence).contains("changed after it was read"));
}

#[test]
fn an_execution_after_the_outcome_is_caught() {
    let (mut evidence, read) = sound();
    evidence.executions[1].started = read + Duration::from_millis(1);
    assert!(only(&evidence).contains("executed after its outcome"));
}

#[test]
fn an_epoch_that_does_not_rise_is_caught() {
    let (mut evidence, _) = sound();
    evidence.executions[0].epoch = 2;
    assert!(only(&evidence).contains("do not rise"));
}

#[test]
fn a_stale_commit_is_caught() {
    let (mut evidence, read) = sound();
    evidence.executions.push(execution(3, read - Duration::from_millis(1)));
    assert!(only(&evidence).contains("not its last"));
}
