//! Claims for some of the lanes that their session serves.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store::{Claim, Exchange, LaneFilter, Submit, Submitted};
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{ids, success};

const SECOND: Duration = Duration::from_secs(1);

/// The next claim of a session, for these queues and types only.
fn narrowed(harness: &Harness, session: SessionId, queues: &[&str], types: &[&str]) -> Claim {
    let only = LaneFilter {
        queues: queues.iter().map(|name| QueueName::new(name).unwrap()).collect(),
        types: types.iter().map(|name| TypeName::new(name).unwrap()).collect(),
    };
    Claim { only: Some(Arc::new(only)), ..harness.next_claim(session, 10) }
}

fn in_queue(task: NewTask, queue: &str) -> NewTask {
    let mut task = task;
    task.lane.queue = QueueName::new(queue).unwrap();
    task
}

pub async fn it_gets_only_what_it_asks_for(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let mut tasks = Vec::new();
    for queue in ["a", "b"] {
        for task_type in ["email", "pdf", "email"] {
            tasks.push(harness.submit_one(in_queue(harness.task(task_type), queue)).await);
        }
    }
    let claim = |queues, types| narrowed(&harness, session, queues, types);
    let both = harness.ask(claim(&["b"], &["email"])).await.leases;
    assert_eq!(ids(&both), [tasks[3], tasks[5]]);
    let one_type = harness.ask(claim(&[], &["pdf"])).await.leases;
    assert_eq!(ids(&one_type), [tasks[1], tasks[4]]);
    assert!(harness.ask(claim(&["b"], &[])).await.leases.is_empty());
    assert_eq!(ids(&harness.claim(session, 10).await), [tasks[0], tasks[2]]);
}

pub async fn it_gets_nothing_that_its_session_does_not_serve(harness: Harness) {
    let session = harness.session_in(&["email"], &["a"]).await;
    harness.submit_one(in_queue(harness.task("pdf"), "a")).await;
    harness.submit_one(in_queue(harness.task("email"), "b")).await;
    for (queues, types) in [(&["a"], &["pdf"]), (&["b"], &["email"])] {
        let answer = harness.ask(narrowed(&harness, session, queues, types)).await;
        assert_eq!((answer.leases.len(), answer.next_due), (0, None));
    }
}

pub async fn next_due_is_that_of_its_lanes(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let due = harness.task("pdf");
    let soon = harness.task_in("pdf", SECOND);
    let later = harness.task_in("email", 2 * SECOND);
    harness.submit(&[due.clone(), soon, later.clone()]).await;
    let emails = narrowed(&harness, session, &[], &["email"]);
    let answer = harness.ask(&emails).await;
    assert_eq!((answer.leases.len(), answer.next_due), (0, Some(later.run_at)));
    // An exchange without a claim tells of all lanes.
    let no_claim = Exchange { session, finishes: vec![], claim: None };
    let answer = harness.store().exchange(no_claim).await.unwrap();
    assert_eq!(answer.next_due, Some(due.run_at));
    harness.advance(2 * SECOND);
    let answer = harness.ask(&emails).await;
    assert_eq!((ids(&answer.leases), answer.next_due), (vec![later.id], None));
}

pub async fn what_comes_back_in_another_lane_is_not_for_it(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let pdf = harness.submit_one(harness.task("pdf")).await;
    let lease = harness.claim_one(session).await;
    let email = harness.submit_one(harness.task("email")).await;
    let claim = narrowed(&harness, session, &[], &["email"]);
    let release = Finish::new(pdf, lease.epoch, Outcome::Release);
    let exchange = Exchange { session, finishes: vec![release], claim: Some(claim) };
    let answer = harness.store().exchange(exchange).await.unwrap();
    assert_eq!((ids(&answer.leases), answer.next_due), (vec![email], None));
    assert_eq!(harness.claim_one(session).await.task, pdf);
}

pub async fn it_is_handed_only_what_it_asks_for(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let email = in_queue(harness.task("email"), "a");
    let others = [in_queue(harness.task("email"), "b"), in_queue(harness.task("pdf"), "a")];
    let tasks = vec![others[0].clone(), email.clone(), others[1].clone()];
    let claim = narrowed(&harness, session, &["a"], &["email"]);
    let batch = Submit { tasks, offer: Some(claim.clone()) };
    let handed_off = Submitted::HandedOff { epoch: 1, granted_at: harness.now() };
    let expected = [harness.stored(), handed_off, harness.stored()];
    assert_eq!(harness.store().submit(batch.clone()).await.unwrap(), expected);
    assert_eq!(harness.store().submit(batch).await.unwrap(), expected, "the same once more");
    assert_eq!(ids(&harness.ask(claim).await.leases), [email.id]);
    assert_eq!(ids(&harness.claim(session, 10).await), others.map(|task| task.id));
}

pub async fn a_repeat_returns_the_batch_whatever_it_asks_for(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let email = harness.submit_one(harness.task("email")).await;
    let pdf = harness.submit_one(harness.task("pdf")).await;
    let claim = narrowed(&harness, session, &[], &["email"]);
    let first = harness.ask(&claim).await.leases;
    assert_eq!(ids(&first), [email]);
    let pdfs = narrowed(&harness, session, &[], &["pdf"]).only;
    for only in [pdfs, None] {
        let again = harness.ask(Claim { only, ..claim.clone() }).await.leases;
        assert_eq!(again, first);
    }
    assert_eq!(harness.claim_one(session).await.task, pdf);
}

pub async fn an_empty_one_may_ask_for_something_else(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let pdf = harness.submit_one(harness.task("pdf")).await;
    let claim = narrowed(&harness, session, &[], &["email"]);
    assert!(harness.ask(&claim).await.leases.is_empty());
    let only = narrowed(&harness, session, &[], &["pdf"]).only;
    assert_eq!(ids(&harness.ask(Claim { only, ..claim }).await.leases), [pdf]);
}

pub async fn it_passes_by_quarantined_tasks_of_other_lanes(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    harness.advance(SECOND);
    let pdfs = [harness.task("pdf"), harness.task("pdf")];
    harness.submit(&pdfs).await;
    let pdfs = pdfs.map(|task| task.id);
    let answer = harness.ask(narrowed(&harness, session, &[], &["pdf"])).await;
    assert_eq!((ids(&answer.leases), answer.next_due), (pdfs.to_vec(), None));
    // The session holds something, so that the quarantined task waits for its end.
    let blocked = harness.ask(narrowed(&harness, session, &[], &["email"])).await;
    assert_eq!((blocked.leases.len(), blocked.next_due), (0, None));
    for lease in &answer.leases {
        harness.finish_one(session, lease, success()).await;
    }
    assert_eq!(harness.claim_one(session).await.task, quarantined);
}

pub async fn a_quarantined_task_is_granted_alone(harness: Harness) {
    let session = harness.session(&["email", "pdf"]).await;
    let quarantined = harness.submit_one(harness.task("email")).await;
    harness.lose("email", QUARANTINE_LOSSES).await;
    harness.advance(SECOND);
    let pdf = harness.submit_one(harness.task("pdf")).await;
    let alone = harness.ask(narrowed(&harness, session, &[], &["email"])).await.leases;
    assert_eq!(ids(&alone), [quarantined]);
    let beside = harness.ask(narrowed(&harness, session, &[], &["pdf"])).await;
    assert_eq!((beside.leases.len(), beside.next_due), (0, None), "nothing beside it");
    harness.finish_one(session, &alone[0], success()).await;
    assert_eq!(harness.claim_one(session).await.task, pdf);
}
