//! Many callers at once.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use duly_core::lease::{Finish, Finished, Lease};
use duly_core::name::TenantName;
use duly_core::ports::store::{CancelTasks, Controlled, Exchange, Submit, Submitted};
use duly_core::state::Status;
use futures_util::future::join_all;

use super::Harness;
use super::harness::success;
use super::idempotency::keyed;

pub async fn many_claimers_run_every_task_once(harness: Harness) {
    const TASKS: usize = 2000;
    const CLAIMERS: usize = 8;
    let submitters = (0..CLAIMERS).map(|_| async {
        for _ in 0..TASKS / CLAIMERS / 10 {
            let tasks: Vec<_> = (0..10).map(|_| harness.task("email")).collect();
            harness.submit(&tasks).await;
        }
    });
    let granted = AtomicUsize::new(0);
    let claimers = (0..CLAIMERS).map(|_| async {
        let session = harness.session(&["email"]).await;
        let (mut seen, mut finishes) = (Vec::new(), Vec::new());
        while granted.load(Ordering::SeqCst) < TASKS || !finishes.is_empty() {
            let claim = Some(harness.next_claim(session, 17));
            let exchange = Exchange { session, finishes, claim };
            let answer = harness.store().exchange(exchange).await.unwrap();
            seen.extend(answer.leases.iter().map(|lease| lease.task));
            granted.fetch_add(answer.leases.len(), Ordering::SeqCst);
            let finish = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
            finishes = answer.leases.iter().map(finish).collect();
        }
        seen
    });
    let (_, seen) = tokio::join!(join_all(submitters), join_all(claimers));
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    assert_eq!(seen.len(), TASKS);
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), TASKS, "no task was granted twice");
}

pub async fn one_key_from_many_callers_stores_one_task(harness: Harness) {
    for round in 0..20 {
        let key = format!("key-{round}");
        let callers = (0..16).map(|_| async {
            let task = keyed(harness.task("email"), &key, 1);
            (task.id, harness.submit(&[task]).await[0])
        });
        let answers = join_all(callers).await;
        let stored: Vec<_> =
            answers.iter().filter(|(_, answer)| *answer == harness.stored()).collect();
        assert_eq!(stored.len(), 1, "{answers:?}");
        let winner = stored[0].0;
        let others = answers.iter().filter(|(id, _)| *id != winner);
        assert!(
            others.into_iter().all(|(_, answer)| *answer == Submitted::Replayed { id: winner })
        );
    }
}

pub async fn a_cancel_and_a_finish_have_one_winner(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let tasks: Vec<_> = (0..400).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let leases = harness.claim(session, tasks.len()).await;
    let races = leases.iter().enumerate().map(|(number, lease)| {
        let cancel = async {
            let order = CancelTasks {
                tenant: TenantName::default_tenant(),
                tasks: vec![lease.task],
                reason: "raced".to_owned(),
            };
            harness.store().cancel(order).await.unwrap()[0]
        };
        let finish = harness.finish_one(session, lease, success());
        // Every other time the other one is asked first.
        async move {
            if number % 2 == 0 {
                tokio::join!(cancel, finish)
            } else {
                let (finished, cancelled) = tokio::join!(finish, cancel);
                (cancelled, finished)
            }
        }
    });
    for (lease, outcome) in leases.iter().zip(join_all(races).await) {
        let status = harness.get(lease.task).await.status;
        match outcome {
            (Controlled::Done, Finished::LeaseLost) => assert_eq!(status, Status::Cancelled),
            (Controlled::Conflict { status: found }, Finished::Done) => {
                assert_eq!((status, found), (Status::Success, Status::Success));
            }
            both => panic!("{both:?}"),
        }
    }
}

/// The caller goes away after its call was sent: either it happened or it did not.
pub async fn a_dropped_call_leaves_nothing_behind(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for _ in 0..100 {
        let task = harness.task("email");
        let id = task.id;
        let store = harness.store();
        {
            let mut call = pin!(store.submit(Submit { tasks: vec![task.clone()], offer: None }));
            let mut context = Context::from_waker(Waker::noop());
            let polled = call.as_mut().poll(&mut context);
            assert!(matches!(polled, Poll::Pending | Poll::Ready(Ok(_))));
        }
        assert_eq!(harness.submit(&[task]).await, [harness.stored()]);
        let lease = harness.claim_one(session).await;
        assert_eq!(lease.task, id);
        harness.finish_one(session, &lease, success()).await;
        assert_eq!(harness.get(id).await.status, Status::Success);
    }
}
