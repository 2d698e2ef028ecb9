//! Tenants' records, and what a suspension means.

use std::collections::BTreeMap;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::lease::Finish;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    Counted, Exchange, Expected, PauseQueue, PutTenant, Submit, TenantChange, Usage,
};
use duly_core::settings::{Kept, OwnRetention};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::tenant::{Quotas, TenantRecord, TenantSettings};

use super::Harness;
use super::harness::{ids, success};

fn tenant(name: &str) -> TenantName {
    TenantName::new(name).unwrap()
}

/// An order that changes nothing but the name.
pub(super) fn plain(name: &str) -> PutTenant {
    PutTenant {
        name: tenant(name),
        suspended: false,
        note: None,
        quotas: Quotas::default(),
        settings: TenantSettings::default(),
        expected: Expected::Any,
    }
}

async fn put(harness: &Harness, put: PutTenant) -> TenantChange {
    harness.store().put_tenant(put).await.unwrap()
}

async fn done(harness: &Harness, order: PutTenant) -> TenantRecord {
    match put(harness, order).await {
        TenantChange::Done { record, .. } => *record,
        other => panic!("{other:?}"),
    }
}

async fn suspend(harness: &Harness, name: &str, suspended: bool) -> TenantRecord {
    done(harness, PutTenant { suspended, ..plain(name) }).await
}

fn task_of(harness: &Harness, name: &str) -> NewTask {
    let mut task = harness.task("email");
    task.lane.tenant = tenant(name);
    task
}

pub async fn a_record_reads_back_as_it_was(mut harness: Harness) {
    assert_eq!(harness.store().tenant(&tenant("acme")).await.unwrap(), None);
    let second = Duration::from_secs(1);
    let retention = OwnRetention {
        success: Some(Kept::For(second)),
        failed: None,
        cancelled: Some(Kept::Forever),
    };
    let order = PutTenant {
        suspended: true,
        note: Some("unpaid\nbills".to_owned()),
        quotas: Quotas { waiting_tasks: Some(7), payload_bytes: Some(0), ..Quotas::default() },
        settings: TenantSettings {
            retries: Some(0),
            back_off: Some(BackOff { base: second, ..BackOff::default() }),
            retention: Some(retention),
            redact: Some(vec!["/card/number".to_owned()]),
        },
        expected: Expected::Absent,
        ..plain("acme")
    };
    let expected = TenantRecord {
        name: tenant("acme"),
        version: 1,
        suspended_at: Some(harness.now()),
        note: order.note.clone(),
        quotas: order.quotas,
        settings: order.settings.clone(),
        created_at: harness.now(),
    };
    let record = Box::new(expected.clone());
    assert_eq!(put(&harness, order).await, TenantChange::Done { record, created: true });
    harness.crash().await;
    assert_eq!(harness.store().tenant(&tenant("acme")).await.unwrap(), Some(expected));
}

pub async fn those_with_a_retention_of_their_own_are_known(harness: Harness) {
    let own = async || harness.store().own_retention().await.unwrap();
    done(&harness, plain("acme")).await;
    assert_eq!(own().await, BTreeMap::new());
    let keeps = |name, retention| {
        let settings = TenantSettings { retention, retries: Some(1), ..TenantSettings::default() };
        done(&harness, PutTenant { settings, ..plain(name) })
    };
    let second = Some(Kept::For(Duration::from_secs(1)));
    let brief = OwnRetention { success: second, ..OwnRetention::default() };
    keeps("acme", Some(OwnRetention::FOREVER)).await;
    keeps("beta", Some(brief)).await;
    let expected = [(tenant("acme"), OwnRetention::FOREVER), (tenant("beta"), brief)];
    assert_eq!(own().await, BTreeMap::from(expected));
    keeps("acme", None).await;
    assert_eq!(own().await, BTreeMap::from([(tenant("beta"), brief)]));
}

pub async fn the_same_again_changes_nothing(harness: Harness) {
    let first = done(&harness, plain("acme")).await;
    harness.advance(Duration::from_secs(1));
    assert_eq!(done(&harness, plain("acme")).await, first);
    let stale = PutTenant { expected: Expected::Version(9), ..plain("acme") };
    assert_eq!(done(&harness, stale).await, first);
    let absent = PutTenant { expected: Expected::Absent, ..plain("acme") };
    let record = Box::new(first.clone());
    assert_eq!(put(&harness, absent).await, TenantChange::Done { record, created: true });
    let changed = done(&harness, PutTenant { note: Some("new".to_owned()), ..plain("acme") }).await;
    assert_eq!((changed.version, changed.created_at), (2, first.created_at));
}

pub async fn a_change_based_on_another_version_is_refused(harness: Harness) {
    let noted =
        |note: &str, expected| PutTenant { note: Some(note.to_owned()), expected, ..plain("acme") };
    let refused = put(&harness, noted("a", Expected::Version(1))).await;
    assert_eq!(refused, TenantChange::Conflict { version: None });
    done(&harness, noted("a", Expected::Absent)).await;
    let first = harness.store().tenant(&tenant("acme")).await.unwrap().unwrap();
    assert_eq!(done(&harness, noted("b", Expected::Version(first.version))).await.version, 2);
    for expected in [Expected::Absent, Expected::Version(1), Expected::Version(3)] {
        let refused = put(&harness, noted("c", expected)).await;
        assert_eq!(refused, TenantChange::Conflict { version: Some(2) }, "{expected:?}");
    }
    let found = harness.store().tenant(&tenant("acme")).await.unwrap().unwrap();
    assert_eq!(found.note.as_deref(), Some("b"));
}

pub async fn they_are_listed_by_name(harness: Harness) {
    for name in ["beta", "acme", "zeta"] {
        done(&harness, plain(name)).await;
    }
    let list = async |after: Option<&str>, limit| {
        let found = harness.store().tenants(after.map(tenant), limit).await.unwrap();
        found.into_iter().map(|it| it.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, ["acme", "beta", "zeta"]);
    assert_eq!(list(Some("acme"), 1).await, ["beta"]);
    assert!(list(Some("zeta"), 10).await.is_empty());
}

pub async fn nothing_of_a_suspended_tenant_is_granted(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let held = harness.submit_one(task_of(&harness, "acme")).await;
    let other = harness.submit_one(task_of(&harness, "other")).await;
    let record = suspend(&harness, "acme", true).await;
    assert_eq!(record.suspended_at, Some(harness.now()));
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!(ids(&answer.leases), [other]);
    assert_eq!(answer.next_due, None, "no worker is told to come back for it");
    let later = harness.session(&["email"]).await;
    assert!(harness.claim(later, 10).await.is_empty(), "nor does a new session get it");
    assert_eq!(suspend(&harness, "acme", false).await.suspended_at, None);
    assert_eq!(ids(&harness.claim(session, 10).await), [held]);
}

pub async fn nothing_of_a_suspended_tenant_is_handed_over(harness: Harness) {
    let session = harness.session(&["email"]).await;
    suspend(&harness, "acme", true).await;
    for _ in 0..2 {
        let offer = Some(harness.next_claim(session, 10));
        let batch = Submit { tasks: vec![task_of(&harness, "acme")], offer };
        assert_eq!(harness.store().submit(batch).await.unwrap(), [harness.stored()]);
    }
    suspend(&harness, "acme", false).await;
    assert_eq!(harness.claim(session, 10).await.len(), 2);
}

pub async fn an_exchange_grants_nothing_of_a_suspended_tenant(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(task_of(&harness, "acme")).await;
    let lease = harness.claim_one(session).await;
    let waits = harness.submit_one(task_of(&harness, "acme")).await;
    suspend(&harness, "acme", true).await;
    let exchange = |finishes, claim| Exchange { session, finishes, claim: Some(claim) };
    let finish = Finish::new(lease.task, lease.epoch, success());
    let first = exchange(vec![finish], harness.next_claim(session, 10));
    let answer = harness.store().exchange(first).await.unwrap();
    assert!(answer.leases.is_empty(), "what ran has ended, and nothing follows it");
    let found = harness.store().get(&tenant("acme"), lease.task).await.unwrap().unwrap();
    assert_eq!(found.status, Status::Success);
    suspend(&harness, "acme", false).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [waits]);
}

pub async fn a_new_lane_of_a_suspended_tenant_waits_too(harness: Harness) {
    suspend(&harness, "acme", true).await;
    let session = harness.session(&["email"]).await;
    let mut task = task_of(&harness, "acme");
    task.lane.queue = QueueName::new("mail").unwrap();
    let id = harness.submit_one(task).await;
    assert!(harness.claim(session, 10).await.is_empty());
    suspend(&harness, "acme", false).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [id]);
}

pub async fn a_suspension_outlives_a_restart(mut harness: Harness) {
    let id = harness.submit_one(task_of(&harness, "acme")).await;
    suspend(&harness, "acme", true).await;
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    assert!(harness.claim(session, 10).await.is_empty());
    suspend(&harness, "acme", false).await;
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn a_suspension_keeps_its_beginning(harness: Harness) {
    let since = suspend(&harness, "acme", true).await.suspended_at;
    harness.advance(Duration::from_secs(5));
    let order = PutTenant { suspended: true, note: Some("why".to_owned()), ..plain("acme") };
    let record = done(&harness, order).await;
    assert_eq!((record.suspended_at, record.version), (since, 2));
}

pub async fn a_pause_and_a_suspension_are_two(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(task_of(&harness, "acme")).await;
    let (acme, queue) = (tenant("acme"), QueueName::default_queue());
    let order = PauseQueue { tenant: acme.clone(), queue: queue.clone(), note: String::new() };
    assert!(harness.store().pause_queue(order.clone()).await.unwrap());
    suspend(&harness, "acme", true).await;
    suspend(&harness, "acme", false).await;
    assert!(harness.claim(session, 10).await.is_empty(), "the queue is still paused");
    suspend(&harness, "acme", true).await;
    assert!(harness.store().resume_queue(&acme, &queue).await.unwrap());
    assert!(harness.claim(session, 10).await.is_empty(), "the tenant is still suspended");
    let state = harness.store().queue(&acme, &queue).await.unwrap().unwrap();
    assert_eq!(state.paused, None);
    suspend(&harness, "acme", false).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [id]);
}

pub async fn its_tasks_are_counted_up_to_a_bound(harness: Harness) {
    let count = async |name: &str, up_to| {
        harness.store().usage(&tenant(name), Usage::WaitingTasks, up_to).await.unwrap()
    };
    let exactly = |count| Counted { count, more: false };
    assert_eq!(count("acme", 10).await, exactly(0));
    let session = harness.session(&["email"]).await;
    harness.submit_one(task_of(&harness, "acme")).await;
    harness.claim_one(session).await;
    for queue in ["default", "mail", "mail"] {
        let mut task = task_of(&harness, "acme");
        task.lane.queue = QueueName::new(queue).unwrap();
        harness.submit_one(task).await;
    }
    let mut later = harness.task_in("email", Duration::from_secs(60));
    later.lane.tenant = tenant("acme");
    harness.submit_one(later).await;
    harness.submit_one(task_of(&harness, "other")).await;
    assert_eq!(count("acme", 10).await, exactly(4), "one of five runs");
    assert_eq!(count("acme", 4).await, exactly(4));
    assert_eq!(count("acme", 3).await, Counted { count: 3, more: true });
    assert_eq!(count("acme", 0).await, Counted { count: 0, more: true });
    for of in [Usage::Schedules, Usage::Workflows] {
        assert_eq!(harness.store().usage(&tenant("acme"), of, 10).await.unwrap(), exactly(0));
    }
}
