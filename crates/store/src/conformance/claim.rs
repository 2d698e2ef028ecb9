//! Granting due tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use duly_core::limits::{STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::name::QueueName;
use duly_core::ports::store::{Claim, Error, Exchange};
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{ids, success};

const SECOND: Duration = Duration::from_secs(1);

pub async fn nothing_is_granted_before_its_time(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task_in("email", SECOND)).await;
    harness.advance(Duration::from_millis(999));
    assert!(harness.claim(session, 10).await.is_empty());
    harness.advance(Duration::from_millis(1));
    let lease = harness.claim_one(session).await;
    assert_eq!((lease.task, lease.epoch, lease.attempt), (id, 1, 1));
    assert_eq!(lease.granted_at, harness.now());
    assert_eq!(harness.get(id).await.granted_at, Some(harness.now()));
}

pub async fn next_due_tells_when_to_come_back(harness: Harness) {
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.ask(harness.next_claim(session, 10)).await.next_due, None);
    let soon = harness.task_in("email", SECOND);
    let later = harness.task_in("email", 2 * SECOND);
    let unserved = harness.task("pdf");
    harness.submit(&[later.clone(), soon.clone(), unserved]).await;
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!(answer.next_due, Some(soon.run_at));
    harness.advance(SECOND);
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!((ids(&answer.leases), answer.next_due), (vec![soon.id], Some(later.run_at)));
    harness.advance(SECOND);
    let answer = harness.ask(harness.next_claim(session, 0)).await;
    assert_eq!((answer.leases.len(), answer.next_due), (0, Some(later.run_at)));
    assert_eq!(harness.claim_one(session).await.task, later.id);
    assert_eq!(harness.ask(harness.next_claim(session, 10)).await.next_due, None);
}

pub async fn older_tasks_come_first(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let third = harness.submit_one(harness.task_in("email", 3 * SECOND)).await;
    let first = harness.submit_one(harness.task_in("email", SECOND)).await;
    let second = harness.submit_one(harness.task_in("email", 2 * SECOND)).await;
    harness.advance(3 * SECOND);
    assert_eq!(ids(&harness.claim(session, 10).await), [first, second, third]);
}

pub async fn priority_is_worth_a_minute_a_level(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let old_and_low = harness.submit_one(harness.task_at("email", 4)).await;
    harness.advance(60 * SECOND - Duration::from_millis(1));
    let just_in_time = harness.submit_one(harness.task_at("email", 5)).await;
    harness.advance(Duration::from_millis(2));
    let too_late = harness.submit_one(harness.task_at("email", 5)).await;
    let leases = harness.claim(session, 10).await;
    assert_eq!(ids(&leases), [just_in_time, old_and_low, too_late]);
}

pub async fn lanes_are_merged_in_order(harness: Harness) {
    let types: Vec<String> = (0..7).map(|number| format!("type-{number}")).collect();
    let names: Vec<&str> = types.iter().map(String::as_str).collect();
    let session = harness.session(&names).await;
    let mut expected = Vec::new();
    for number in 0..210_usize {
        let mut task = harness.task(names[number % names.len()]);
        task.lane.queue = QueueName::new(["a", "b", "c"][number % 3]).unwrap();
        expected.push(harness.submit_one(task).await);
        harness.advance(Duration::from_millis(1));
    }
    let mut claimed = Vec::new();
    for size in [1, 2, 50, 100, 100] {
        claimed.extend(ids(&harness.claim(session, size).await));
    }
    assert_eq!(claimed, expected);
}

pub async fn crowded_lanes_are_merged_in_order(harness: Harness) {
    let session = harness.session(&["email"]).await;
    // Most tasks lie in one of many lanes; then in two of five.
    for queue_of in [
        |number: usize| if number.is_multiple_of(3) { number } else { 1 },
        |number: usize| if number < 3 { number + 200 } else { number % 2 },
    ] {
        let mut expected = Vec::new();
        for number in 0..120 {
            let mut task = harness.task("email");
            task.lane.queue = QueueName::new(&format!("queue-{}", queue_of(number))).unwrap();
            expected.push(harness.submit_one(task).await);
            harness.advance(Duration::from_millis(1));
        }
        let mut claimed = Vec::new();
        for size in [100, 10, 10] {
            claimed.extend(ids(&harness.claim(session, size).await));
        }
        assert_eq!(claimed, expected);
    }
}

pub async fn each_lane_tells_when_to_come_back(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let in_queue = |number: u32, delay: Duration| {
        let mut task = harness.task_in("email", delay);
        task.lane.queue = QueueName::new(&format!("queue-{number}")).unwrap();
        task
    };
    let due: Vec<_> = (0..20).map(|number| in_queue(number, Duration::ZERO)).collect();
    // One each in most of these lanes, of different times.
    let later: Vec<_> = (0..15).map(|number| in_queue(number, (15 - number) * SECOND)).collect();
    harness.submit(&due).await;
    harness.submit(&later).await;
    let mut leases = Vec::new();
    for size in [8, 12] {
        let answer = harness.ask(harness.next_claim(session, size)).await;
        let next = if size == 8 { due[0].run_at } else { later[14].run_at };
        assert_eq!((answer.leases.len(), answer.next_due), (size, Some(next)));
        leases.extend(ids(&answer.leases));
    }
    assert_eq!(leases, due.iter().map(|task| task.id).collect::<Vec<_>>());
    for (place, task) in later.iter().enumerate().rev() {
        harness.advance(SECOND);
        let answer = harness.ask(harness.next_claim(session, 10)).await;
        let next = place.checked_sub(1).map(|place| later[place].run_at);
        assert_eq!((ids(&answer.leases), answer.next_due), (vec![task.id], next));
    }
}

pub async fn a_session_gets_only_what_it_serves(harness: Harness) {
    let session = harness.session_in(&["email"], &["fast"]).await;
    harness.submit_one(harness.task("email")).await;
    let mut wanted = harness.task("email");
    wanted.lane.queue = QueueName::new("fast").unwrap();
    let mut other_type = harness.task("pdf");
    other_type.lane.queue = QueueName::new("fast").unwrap();
    harness.submit_one(other_type).await;
    let wanted = harness.submit_one(wanted).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [wanted]);
}

pub async fn a_new_lane_reaches_an_open_session(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for queue in ["first", "second"] {
        let mut task = harness.task("email");
        task.lane.queue = QueueName::new(queue).unwrap();
        let id = harness.submit_one(task).await;
        assert_eq!(harness.claim_one(session).await.task, id);
    }
}

pub async fn a_claim_takes_no_more_than_it_asked_for(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks: Vec<_> = (0..10).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let order: Vec<_> = tasks.iter().map(|task| task.id).collect();
    assert_eq!(ids(&harness.claim(session, 3).await), order[..3]);
    assert_eq!(ids(&harness.claim(session, 3).await), order[3..6]);
    assert_eq!(ids(&harness.claim(session, 100).await), order[6..]);
}

pub async fn a_claim_of_large_payloads_is_bounded(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let payload: Arc<str> = format!("\"{}\"", "x".repeat(1_000_000)).into();
    let mut expected = Vec::new();
    for _ in 0..9 {
        let task = NewTask { payload: Arc::clone(&payload), ..harness.task("email") };
        expected.push(harness.submit_one(task).await);
    }
    let mut claimed = Vec::new();
    while claimed.len() < expected.len() {
        let leases = harness.claim(session, 100).await;
        let bytes: usize = leases.iter().map(|lease| lease.payload.len()).sum();
        assert!(!leases.is_empty() && bytes <= STORE_BATCH_BYTES, "{bytes} bytes");
        claimed.extend(ids(&leases));
    }
    assert_eq!(claimed, expected);
}

pub async fn two_claimers_never_share_a_task(harness: Harness) {
    let (one, two) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let tasks: Vec<_> = (0..10).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let mut seen = HashSet::new();
    for session in [one, two, one, two] {
        for lease in harness.claim(session, 4).await {
            assert!(seen.insert(lease.task), "{} was granted twice", lease.task);
        }
    }
    assert_eq!(seen.len(), 10);
}

pub async fn a_repeated_claim_returns_the_same_leases(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let large = format!("\"{}\"", "x".repeat(3000)).into();
    let tasks: Vec<_> =
        (0..4).map(|_| NewTask { payload: Arc::clone(&large), ..harness.task("email") }).collect();
    harness.submit(&tasks).await;
    let claim = harness.next_claim(session, 3);
    let first = harness.ask(&claim).await.leases;
    assert_eq!(harness.ask(&claim).await.leases, first);
    harness.finish_one(session, &first[0], success()).await;
    assert_eq!(harness.ask(&claim).await.leases, first[1..], "what has ended is left out");
}

pub async fn a_late_echo_of_a_claim_gets_nothing_new(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks: Vec<_> = (0..4).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let early = harness.next_claim(session, 1);
    let lease = harness.ask(&early).await.leases.remove(0);
    harness.finish_one(session, &lease, success()).await;
    assert!(harness.ask(&early).await.leases.is_empty(), "the batch has ended");
    assert_eq!(harness.claim(session, 1).await.len(), 1);
    assert!(harness.ask(&early).await.leases.is_empty(), "a newer claim was made");
}

pub async fn an_empty_claim_may_be_repeated_until_there_is_work(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let claim = harness.next_claim(session, 5);
    assert!(harness.ask(&claim).await.leases.is_empty());
    let id = harness.submit_one(harness.task("email")).await;
    assert_eq!(ids(&harness.ask(&claim).await.leases), [id]);
}

pub async fn an_unknown_session_gets_nothing(harness: Harness) {
    harness.submit_one(harness.task("email")).await;
    let unknown = duly_core::id::SessionId::mint(harness.now(), 99);
    let claim = Claim::new(unknown, 1, 10);
    assert!(harness.ask(&claim).await.leases.is_empty());
}

pub async fn a_batch_over_the_limit_is_refused(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let claim = harness.next_claim(session, STORE_BATCH + 1);
    let exchange = Exchange { session, finishes: vec![], claim: Some(claim) };
    let refused = harness.store().exchange(exchange).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
}
