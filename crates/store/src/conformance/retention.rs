//! Tasks that ended long ago are deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::limits::{SCAN_ROWS, STORE_BATCH};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Controlled, Cutoffs, GroupDead, ListDead, ListTasks, Replay, ReplayTasks,
    Submitted, Sweep,
};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;

use super::Harness;
use super::harness::{fail, retry, success};
use super::idempotency::keyed;

const HOUR: Duration = Duration::from_secs(3600);

fn own() -> TenantName {
    TenantName::default_tenant()
}

/// Everything that ended before this time.
fn all_until(time: Timestamp) -> Cutoffs {
    Cutoffs { success: Some(time), failed: Some(time), cancelled: Some(time) }
}

/// A sweep of that, of all tenants.
fn all_before(time: Timestamp) -> Sweep {
    Sweep { cutoffs: all_until(time), ..Sweep::default() }
}

/// A sweep in which one tenant has cutoffs of its own.
fn with_own(cutoffs: Cutoffs, tenant: &TenantName, own: Cutoffs) -> Sweep {
    let tenants = BTreeMap::from([(tenant.clone(), own)]).into();
    Sweep { cutoffs, tenants, after: None }
}

/// Sweeps from the first id to the last; how many calls that took.
async fn sweep(harness: &Harness, mut sweep: Sweep) -> usize {
    for calls in 1.. {
        let swept = harness.store().sweep(sweep.clone()).await.unwrap();
        assert!(swept.deleted as usize <= STORE_BATCH);
        sweep.after = swept.next;
        if sweep.after.is_none() {
            return calls;
        }
    }
    unreachable!("there is an end to the tasks")
}

async fn is_there(harness: &Harness, id: TaskId) -> bool {
    harness.store().get(&own(), id).await.unwrap().is_some()
}

/// Runs one task to this outcome.
async fn ended(harness: &Harness, task: NewTask, outcome: Outcome) -> TaskId {
    let session = harness.session(&[task.lane.task_type.as_str()]).await;
    let id = harness.submit_one(task).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, outcome).await;
    harness.leave(session).await;
    id
}

async fn cancelled(harness: &Harness, task: NewTask) -> TaskId {
    let id = harness.submit_one(task).await;
    let order = CancelTasks { tenant: own(), tasks: vec![id], reason: String::new() };
    assert_eq!(harness.store().cancel(order).await.unwrap(), [Controlled::Done]);
    id
}

async fn replay(harness: &Harness, task: TaskId) -> Controlled {
    let tasks = vec![Replay { task, run: 1, run_at: None }];
    let order = ReplayTasks { tenant: own(), tasks, payload: None };
    harness.store().replay(order).await.unwrap()[0]
}

pub async fn each_outcome_has_its_own_time(harness: Harness) {
    let succeeded = ended(&harness, harness.task("email"), success()).await;
    let failed = ended(&harness, harness.task("email"), fail()).await;
    let called_off = cancelled(&harness, harness.task("email")).await;
    let ids = [succeeded, failed, called_off];
    harness.advance(HOUR);
    let now = Some(harness.now());
    let none = Cutoffs::default();
    for (only, left) in [
        (none, [true, true, true]),
        (Cutoffs { success: now, ..none }, [false, true, true]),
        (Cutoffs { cancelled: now, ..none }, [false, true, false]),
        (Cutoffs { failed: now, ..none }, [false, false, false]),
    ] {
        sweep(&harness, Sweep { cutoffs: only, ..Sweep::default() }).await;
        for (id, left) in ids.into_iter().zip(left) {
            assert_eq!(is_there(&harness, id).await, left, "{only:?}");
        }
    }
}

pub async fn the_time_counts_from_the_end(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.advance(HOUR);
    harness.finish_one(session, &lease, success()).await;
    let end = harness.now();
    harness.advance(HOUR);
    sweep(&harness, all_before(end)).await;
    assert!(is_there(&harness, id).await, "it ended at that time, not before");
    sweep(&harness, all_before(end.plus(Duration::from_millis(1)))).await;
    assert!(!is_there(&harness, id).await);
}

pub async fn what_has_not_ended_stays(harness: Harness) {
    let session = harness.session(&["running", "flaky"]).await;
    let waits = harness.submit_one(harness.task("waiting")).await;
    let runs = harness.submit_one(harness.task("running")).await;
    harness.claim_one(session).await;
    let retries = harness.submit_one(harness.task("flaky")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    harness.advance(HOUR);
    sweep(&harness, all_before(harness.now())).await;
    for (id, status) in
        [(waits, Status::Pending), (runs, Status::Running), (retries, Status::Pending)]
    {
        assert_eq!(harness.get(id).await.status, status);
    }
    assert_eq!(harness.store().attempts(&own(), retries).await.unwrap().unwrap().len(), 1);
}

pub async fn everything_about_a_task_goes(harness: Harness) {
    let mut large = harness.task("email");
    large.payload = format!("\"{}\"", "x".repeat(5000)).into();
    let id = ended(&harness, large.clone(), fail()).await;
    harness.advance(HOUR);
    sweep(&harness, all_before(harness.now())).await;
    assert!(!is_there(&harness, id).await);
    assert!(harness.store().attempts(&own(), id).await.unwrap().is_none());
    let filter = Filter::default;
    let page = ListDead { tenant: own(), filter: filter(), before: None, limit: 10 };
    assert!(harness.store().dead_letters(page).await.unwrap().tasks.is_empty());
    let groups = GroupDead { tenant: own(), filter: filter(), limit: 10 };
    assert!(harness.store().dead_groups(groups).await.unwrap().groups.is_empty());
    let page = ListTasks { tenant: own(), filter: filter(), before: None, limit: 10 };
    assert!(harness.store().list(page).await.unwrap().tasks.is_empty());
    assert_eq!(harness.submit(&[large]).await, [harness.stored()], "the id is free again");
    assert!(harness.store().attempts(&own(), id).await.unwrap().unwrap().is_empty());
}

pub async fn the_key_of_a_deleted_task_may_be_used_again(harness: Harness) {
    ended(&harness, keyed(harness.task("email"), "k", 1), success()).await;
    harness.advance(HOUR);
    sweep(&harness, all_before(harness.now())).await;
    let next = keyed(harness.task("email"), "k", 2);
    assert_eq!(harness.submit(std::slice::from_ref(&next)).await, [harness.stored()]);
    let again = keyed(harness.task("email"), "k", 2);
    assert_eq!(harness.submit(&[again]).await, [Submitted::Replayed { id: next.id }]);
}

pub async fn tasks_of_all_tenants_are_deleted(harness: Harness) {
    let mut foreign = harness.task("email");
    let tenant = TenantName::new("other").unwrap();
    foreign.lane.tenant = tenant.clone();
    let id = ended(&harness, foreign, success()).await;
    harness.advance(HOUR);
    sweep(&harness, all_before(harness.now())).await;
    assert_eq!(harness.store().get(&tenant, id).await.unwrap(), None);
}

pub async fn a_tenants_own_times_count_instead(harness: Harness) {
    let acme = TenantName::new("acme").unwrap();
    let mut tasks = Vec::new();
    for (tenant, outcome) in
        [(own(), success()), (own(), fail()), (acme.clone(), success()), (acme.clone(), fail())]
    {
        let mut task = harness.task("email");
        task.lane.tenant = tenant.clone();
        tasks.push((tenant, ended(&harness, task, outcome).await));
    }
    harness.advance(HOUR);
    let (now, never) = (harness.now(), Cutoffs::default());
    let failed = Cutoffs { failed: Some(now), ..never };
    for (cutoffs, of_acme, left) in [
        (never, never, [true, true, true, true]),
        (failed, never, [true, false, true, true]),
        (never, failed, [true, false, true, false]),
        (all_until(now), never, [false, false, true, false]),
        (never, all_until(now), [false, false, false, false]),
    ] {
        sweep(&harness, with_own(cutoffs, &acme, of_acme)).await;
        for ((tenant, id), left) in tasks.iter().zip(left) {
            let found = harness.store().get(tenant, *id).await.unwrap();
            assert_eq!(found.is_some(), left, "{cutoffs:?}, {of_acme:?}");
        }
    }
}

pub async fn a_shorter_time_of_a_tenant_spares_the_others(harness: Harness) {
    let (acme, beta) = (TenantName::new("acme").unwrap(), TenantName::new("beta").unwrap());
    let mut tasks = Vec::new();
    for tenant in [own(), acme.clone(), beta.clone()] {
        let mut task = harness.task("email");
        task.lane.tenant = tenant.clone();
        let id = ended(&harness, task, success()).await;
        tasks.push((tenant, id));
        harness.advance(HOUR);
    }
    let (now, hours) = (harness.now(), |hours| Some(harness.now().minus(HOUR * hours)));
    let order = with_own(
        Cutoffs { success: hours(3), ..Cutoffs::default() },
        &acme,
        Cutoffs { success: hours(2), ..Cutoffs::default() },
    );
    sweep(&harness, order.clone()).await;
    for (tenant, id) in &tasks {
        assert!(
            harness.store().get(tenant, *id).await.unwrap().is_some(),
            "none is older: {tenant}"
        );
    }
    let mut both = BTreeMap::clone(&order.tenants);
    both.insert(acme, all_until(now));
    both.insert(beta, all_until(now));
    sweep(&harness, Sweep { tenants: both.into(), ..order }).await;
    for ((tenant, id), left) in tasks.iter().zip([true, false, false]) {
        let found = harness.store().get(tenant, *id).await.unwrap();
        assert_eq!(found.is_some(), left, "{tenant}");
    }
}

pub async fn a_replayed_task_stays(harness: Harness) {
    let id = ended(&harness, harness.task("email"), fail()).await;
    harness.advance(HOUR);
    assert_eq!(replay(&harness, id).await, Controlled::Done);
    sweep(&harness, all_before(harness.now())).await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
    let session = harness.session(&["email"]).await;
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn a_sweep_and_a_replay_have_one_winner(harness: Harness) {
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(ended(&harness, harness.task("email"), fail()).await);
    }
    harness.advance(HOUR);
    let replays = futures_util::future::join_all(ids.iter().map(|id| replay(&harness, *id)));
    let (replays, _) = tokio::join!(replays, sweep(&harness, all_before(harness.now())));
    for (id, replayed) in ids.into_iter().zip(replays) {
        let found = harness.store().get(&own(), id).await.unwrap();
        match replayed {
            // A replay whose answer was lost finds the task gone only if it never came to pass.
            Controlled::Done => assert_eq!(found.unwrap().status, Status::Pending),
            Controlled::Unknown => assert_eq!(found, None),
            other => panic!("it had ended and has no children: {other:?}"),
        }
    }
}

pub async fn one_call_deletes_a_bounded_number(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let tasks: Vec<_> = (0..STORE_BATCH).map(|_| harness.task("email")).collect();
        ids.extend([tasks[0].id, tasks[STORE_BATCH - 1].id]);
        harness.submit(&tasks).await;
        let leases = harness.claim(session, STORE_BATCH).await;
        let done = |lease: &Lease| Finish::new(lease.task, lease.epoch, success());
        harness.finish(session, leases.iter().map(done).collect()).await;
    }
    harness.advance(HOUR);
    assert!(sweep(&harness, all_before(harness.now())).await > 1);
    for id in ids {
        assert!(!is_there(&harness, id).await);
    }
}

pub async fn one_call_looks_at_a_bounded_number(harness: Harness) {
    for _ in 0..SCAN_ROWS as usize / STORE_BATCH {
        let tasks: Vec<_> = (0..STORE_BATCH).map(|_| harness.task("waiting")).collect();
        harness.submit(&tasks).await;
    }
    let last = ended(&harness, harness.task("email"), success()).await;
    harness.advance(HOUR);
    let first = harness.store().sweep(all_before(harness.now())).await.unwrap();
    assert_eq!((first.deleted, first.next.is_some_and(|next| next < last)), (0, true));
    assert!(is_there(&harness, last).await, "it is beyond what one call looks at");
    sweep(&harness, all_before(harness.now())).await;
    assert!(!is_there(&harness, last).await);
}

pub async fn what_was_due_later_is_not_looked_at(harness: Harness) {
    let mut later = harness.task_in("email", HOUR);
    later.id = TaskId::mint(later.run_at, 1, 7);
    let id = cancelled(&harness, later).await;
    harness.advance(HOUR);
    sweep(&harness, all_before(harness.now())).await;
    assert!(is_there(&harness, id).await);
    harness.advance(Duration::from_millis(1));
    sweep(&harness, all_before(harness.now())).await;
    assert!(!is_there(&harness, id).await);
}

/// Forgets sessions that ended before this time, and all of them; how many calls that took.
async fn forget_sessions(harness: &Harness, before: Timestamp) -> usize {
    for calls in 1.. {
        let forgotten = harness.store().forget_sessions(before).await.unwrap();
        assert!(forgotten as usize <= STORE_BATCH);
        if forgotten == 0 {
            return calls;
        }
    }
    unreachable!("there is an end to them")
}

/// Runs a task in a session: one attempt fails, the next succeeds.
async fn tried_twice(harness: &Harness, session: SessionId, task: NewTask) -> TaskId {
    let id = harness.submit_one(task).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    harness.advance(HOUR);
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    id
}

/// Which workers a task and its attempts name.
async fn workers(harness: &Harness, id: TaskId) -> Vec<Option<String>> {
    let attempts = harness.store().attempts(&own(), id).await.unwrap().unwrap();
    let attempts = attempts.into_iter().map(|attempt| attempt.worker);
    [harness.get(id).await.worker].into_iter().chain(attempts).collect()
}

pub async fn sessions_that_ended_long_ago_are_forgotten(harness: Harness) {
    let (left, died) = (harness.session(&["email"]).await, harness.remote(&["letter"]).await);
    let open = harness.remote(&["post", "parcel"]).await;
    let first = tried_twice(&harness, left, harness.task("email")).await;
    let second = tried_twice(&harness, died, harness.task("letter")).await;
    let third = tried_twice(&harness, open, harness.task("post")).await;
    let held = harness.submit_one(harness.task("parcel")).await;
    let lease = harness.claim_one(open).await;
    harness.leave(left).await;
    harness.die(died).await;
    let end = harness.now();
    harness.advance(HOUR);
    forget_sessions(&harness, end).await;
    for id in [first, second, third] {
        let named = workers(&harness, id).await;
        assert!(named.len() == 3 && named.iter().all(Option::is_some), "at that time: {named:?}");
    }
    forget_sessions(&harness, end.plus(Duration::from_millis(1))).await;
    assert_eq!(workers(&harness, first).await, [const { None }; 3]);
    assert_eq!(workers(&harness, second).await, [const { None }; 3]);
    assert!(workers(&harness, third).await.iter().all(Option::is_some), "it is open");
    harness.finish_one(open, &lease, success()).await;
    assert_eq!(harness.get(held).await.status, Status::Success);
    assert_eq!(harness.get(first).await.session, Some(left), "the id stays");
}

pub async fn one_call_forgets_a_bounded_number_of_sessions(harness: Harness) {
    for _ in 0..=STORE_BATCH {
        let session = harness.session(&["email"]).await;
        harness.leave(session).await;
    }
    harness.advance(HOUR);
    let calls = forget_sessions(&harness, harness.now()).await;
    assert!(calls > 1, "{calls}");
}
