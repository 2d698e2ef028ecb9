//! The engine over the memory store, in tokio's paused time.

mod backfill;
mod bulk;
mod events;
mod explain;
mod faults;
mod keys;
mod nodes;
mod remote;
mod reports;
mod schedules;
mod settings;
mod stores;
mod tenants;
mod workflows;
mod world;

use std::time::Duration;

use duly_core::lease::{Finished, Outcome};
use duly_core::name::TenantName;
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::state::Status;
use duly_core::submit::Draft;
use duly_engine::command::submit::{Error, Refused};
use world::{World, draft, finish, must_wait, settle, success};

#[tokio::test(start_paused = true)]
async fn a_task_reaches_a_waiting_worker_in_the_commit_that_stores_it() {
    let world = World::new().await;
    let mut claim = world.source.claim(10);
    must_wait(&mut claim).await;
    let exchanges = world.faults.exchanges();
    let accepted = world.submit(draft("echo")).await;
    let leases = claim.await.unwrap();
    assert_eq!(accepted.task.status, Status::Running);
    assert_eq!((leases[0].task, leases[0].epoch), (accepted.task.id, 1));
    assert_eq!(world.faults.exchanges(), exchanges, "no further claim was needed");
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_worker_waits_and_is_claimed_later() {
    let world = World::new().await;
    let first = world.submit(draft("echo")).await.task;
    let second = world.submit(draft("echo")).await.task;
    assert_eq!((first.status, second.status), (Status::Pending, Status::Pending));
    let leases = world.source.claim(10).await.unwrap();
    assert_eq!(leases.iter().map(|lease| lease.task).collect::<Vec<_>>(), [first.id, second.id]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_task_starts_at_its_time_and_never_before() {
    let world = World::new().await;
    for delay in [0.001, 0.25, 3.0, 3600.0] {
        let task = Draft { delay_seconds: Some(delay), ..draft("echo") };
        let task = world.submit(task).await.task;
        let lease = world.source.claim(1).await.unwrap().remove(0);
        let late = world.now().await.millis() - task.run_at.millis();
        assert!((0..=2).contains(&late), "{delay} s: {late} ms late");
        world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_task_shortens_the_sleep() {
    let world = World::new().await;
    let in_seconds = |delay| Draft { delay_seconds: Some(delay), ..draft("echo") };
    world.submit(in_seconds(1000.0)).await;
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let soon = world.submit(in_seconds(1.0)).await.task;
    assert_eq!(claim.await.unwrap()[0].task, soon.id);
}

#[tokio::test(start_paused = true)]
async fn lost_hints_cost_time_and_nothing_else() {
    let world = World::losing_hints().await;
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let task = Draft { delay_seconds: Some(1.0), ..draft("echo") };
    let task = world.submit(task).await.task;
    assert_eq!(claim.await.unwrap()[0].task, task.id);
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_leaves_the_store_alone() {
    let world = World::new().await;
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let waited = tokio::time::timeout(Duration::from_secs(3600), &mut claim).await;
    assert!(waited.is_err());
    let polls = world.faults.exchanges();
    assert!(polls <= 121, "one safety poll per half minute, not {polls} in an hour");
}

#[tokio::test(start_paused = true)]
async fn concurrent_submits_share_a_call() {
    let world = World::new().await;
    let calls = (0..500).map(|_| world.submit(draft("echo")));
    futures_util::future::join_all(calls).await;
    let submits = world.faults.calls("submit");
    assert!(submits <= 3, "500 submits took {submits} calls");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_claim_gives_its_leases_back() {
    let world = World::new().await;
    world.faults.hold();
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let mut submit = Box::pin(world.submit(draft("echo")));
    must_wait(&mut submit).await;
    world.faults.held().await;
    drop(claim);
    world.faults.go_on();
    let task = submit.await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    assert_eq!((lease.task, lease.attempt), (task.id, 1));
}

#[tokio::test(start_paused = true)]
async fn outcomes_outlive_a_store_that_is_away() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    settle().await;
    world.faults.fail_next(20);
    let answers = world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    assert_eq!(answers, [Finished::Done]);
    assert_eq!(world.get(task.id).await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_the_store_refuses_says_so() {
    let world = World::new().await;
    settle().await;
    world.faults.fail_next(1);
    let spec = draft("echo").check().unwrap();
    let tenant = TenantName::default_tenant();
    let refused = world.engine.submit(&tenant, vec![spec]).await.unwrap_err();
    assert!(matches!(refused, Error::Store(error) if error.is_retryable()));
    world.submit(draft("echo")).await;
}

#[tokio::test(start_paused = true)]
async fn keys_and_distance_are_judged_item_by_item() {
    let world = World::new().await;
    let keyed = |payload: &str| Draft {
        idempotency_key: Some("k".to_owned()),
        payload: Some(payload.to_owned()),
        ..draft("echo")
    };
    let far = Draft { run_at: Some("2999-01-01T00:00:00Z".to_owned()), ..draft("echo") };
    let specs = [keyed("1"), keyed("1"), keyed("2"), far].map(|draft| draft.check().unwrap());
    let tenant = TenantName::default_tenant();
    let answers = world.engine.submit(&tenant, specs.to_vec()).await.unwrap();
    let first = answers[0].as_ref().unwrap();
    let again = answers[1].as_ref().unwrap();
    assert_eq!((again.task.id, again.replayed), (first.task.id, true));
    assert_eq!(answers[2].as_ref().unwrap_err(), &Refused::KeyReused);
    assert_eq!(answers[3].as_ref().unwrap_err(), &Refused::TooFarAhead);
}

#[tokio::test(start_paused = true)]
async fn a_type_without_a_worker_is_taken_with_a_warning() {
    let world = World::new().await;
    assert!(!world.submit(draft("echo")).await.unserved);
    assert!(world.submit(draft("unserved")).await.unserved);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_outcome_or_with_patience() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let open = world.wait(task.id, Duration::from_secs(5)).await;
    assert_eq!(open.status, Status::Pending);
    let lease = world.source.claim(1).await.unwrap().remove(0);
    let (ended, _) = tokio::join!(
        world.wait(task.id, Duration::from_secs(60)),
        world.source.finish(vec![finish(&lease, success())]),
    );
    assert_eq!(ended.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn closing_puts_unfinished_work_back() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.engine.close().await;
    assert_eq!(world.get(task.id).await.status, Status::Pending);
    assert!(world.source.claim(1).await.is_err());
    assert!(world.source.finish(vec![finish(&lease, Outcome::Release)]).await.is_err());
    let spec = draft("echo").check().unwrap();
    let closed = world.engine.submit(&TenantName::default_tenant(), vec![spec]).await;
    assert!(matches!(closed, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn one_outcome_that_cannot_be_committed_spoils_no_other() {
    let world = World::new().await;
    for _ in 0..7 {
        world.submit(draft("echo")).await;
    }
    let leases = world.source.claim(7).await.unwrap();
    world.faults.poison(leases[4].task);
    let batch = leases.iter().map(|lease| finish(lease, success())).collect();
    let answers = world.source.finish(batch).await.unwrap();
    let mut expected = [Finished::Done; 7];
    expected[4] = Finished::Unknown;
    assert_eq!(answers, expected);
    for (place, lease) in leases.iter().enumerate().filter(|(place, _)| *place != 4) {
        assert_eq!(world.get(lease.task).await.status, Status::Success, "{place}");
    }
    let again = world.source.claim(7).await.unwrap();
    assert_eq!((again.len(), again[0].task), (1, leases[4].task), "its lease was handed back");
}

#[tokio::test(start_paused = true)]
async fn leases_that_arrive_as_a_claim_is_dropped_are_given_back() {
    let world = World::new().await;
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    // Granted and sent; the claim is dropped before it looks.
    let task = world.submit(draft("echo")).await.task;
    assert_eq!(task.status, Status::Running);
    drop(claim);
    let lease = world.source.claim(1).await.unwrap().remove(0);
    assert_eq!((lease.task, lease.epoch, lease.attempt), (task.id, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn submits_for_later_do_not_keep_a_worker_from_what_is_due() {
    let world = World::new().await;
    let due = world.submit(draft("echo")).await.task;
    let later = || Draft { delay_seconds: Some(86_400.0), ..draft("echo") };
    let mut claim = world.source.claim(1);
    let leases = tokio::select! {
        biased;
        () = async { loop { world.submit(later()).await; } } => unreachable!("it never ends"),
        leases = &mut claim => leases.unwrap(),
    };
    assert_eq!(leases[0].task, due.id);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_worker_and_those_who_wait() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    let tenant = TenantName::default_tenant();
    let (told, waited, cancelled) = tokio::join!(
        world.source.taken_back(),
        world.wait(task.id, Duration::from_secs(60)),
        world.engine.cancel(&tenant, task.id, "enough".to_owned()),
    );
    assert_eq!(told, [TakenBack { task: task.id, epoch: lease.epoch, why: Why::Cancelled }]);
    assert_eq!(waited.status, Status::Cancelled);
    assert_eq!(cancelled.unwrap().error.unwrap().message, "enough");
    let late = world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    assert_eq!(late, [Finished::LeaseLost]);
}

#[tokio::test(start_paused = true)]
async fn a_replayed_task_reaches_a_worker_that_waits() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.source.finish(vec![finish(&lease, success())]).await.unwrap();
    let mut claim = world.source.claim(1);
    must_wait(&mut claim).await;
    let tenant = TenantName::default_tenant();
    let replayed = world.engine.replay(&tenant, task.id, Some("7".into())).await.unwrap();
    assert_eq!((replayed.run, &*replayed.payload), (2, "7"));
    let again = claim.await.unwrap().remove(0);
    assert_eq!((again.task, again.run, again.epoch), (task.id, 2, 2));
    let conflict = world.engine.replay(&tenant, task.id, None).await.unwrap_err();
    assert_eq!(conflict.to_string(), "the task is RUNNING");
}

#[tokio::test(start_paused = true)]
async fn a_large_submit_that_fails_half_way_says_what_was_stored() {
    let world = World::new().await;
    world.faults.fail_submit(2);
    let tenant = TenantName::default_tenant();
    let specs = vec![draft("echo").check().unwrap(); 2_500];
    let answers = world.engine.submit(&tenant, specs).await.unwrap();
    let refused = |answer: &Result<_, Refused>| matches!(answer, Err(Refused::NotStored { .. }));
    assert!(answers[..1000].iter().all(Result::is_ok));
    assert!(answers[1000..2000].iter().all(refused));
    assert!(answers[2000..].iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_is_blocked_fails_alone() {
    let world = World::new().await;
    let tenant = TenantName::default_tenant();
    let submit = async |name| {
        let spec = draft(name).check().unwrap();
        world.engine.submit(&tenant, vec![spec]).await.is_ok()
    };
    // While the first is being stored, the others gather.
    world.faults.hold();
    let mut first = Box::pin(submit("echo"));
    must_wait(&mut first).await;
    world.faults.held().await;
    let submits = world.faults.calls("submit");
    let others = async {
        let gathered = tokio::join!(submit("echo"), submit("blocked"), submit("echo"));
        assert_eq!(gathered, (true, false, true));
    };
    let go_on = async { world.faults.go_on() };
    tokio::join!(first, others, go_on);
    assert!(world.faults.calls("submit") > submits + 1, "they were tried together and then apart");
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_after_an_outcome_was_given_up_for_good() {
    let world = World::new().await;
    world.submit(draft("echo")).await;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.faults.poison(lease.task);
    world.faults.poison_releases();
    let (answers, leases, next) = tokio::join!(
        world.source.finish(vec![finish(&lease, success())]),
        world.source.claim(1),
        async {
            let later = Draft { delay_seconds: Some(60.0), ..draft("echo") };
            world.submit(later).await.task
        },
    );
    assert_eq!(answers.unwrap(), [Finished::Unknown]);
    assert_eq!(leases.unwrap()[0].task, next.id);
}

crate::stores::with_lost_hints!(
    all: a_task_reaches_a_waiting_worker_in_the_commit_that_stores_it,
    what_finds_no_worker_waits_and_is_claimed_later,
    an_earlier_task_shortens_the_sleep,
    lost_hints_cost_time_and_nothing_else,
    a_dropped_claim_gives_its_leases_back,
    outcomes_outlive_a_store_that_is_away,
    a_submit_that_the_store_refuses_says_so,
    keys_and_distance_are_judged_item_by_item,
    a_type_without_a_worker_is_taken_with_a_warning,
    waiting_ends_with_the_outcome_or_with_patience,
    closing_puts_unfinished_work_back,
    one_outcome_that_cannot_be_committed_spoils_no_other,
    leases_that_arrive_as_a_claim_is_dropped_are_given_back,
    submits_for_later_do_not_keep_a_worker_from_what_is_due,
    a_cancel_reaches_the_worker_and_those_who_wait,
    a_replayed_task_reaches_a_worker_that_waits,
    a_large_submit_that_fails_half_way_says_what_was_stored,
    a_submit_that_is_blocked_fails_alone,
    work_goes_on_after_an_outcome_was_given_up_for_good;
    one_process: an_idle_engine_leaves_the_store_alone;
    memory: concurrent_submits_share_a_call
);
