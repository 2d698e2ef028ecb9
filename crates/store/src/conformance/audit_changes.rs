//! What the audit log holds of each kind of change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    CancelTasks, Controlled, Decide, Decided, DeleteSchedule, DeleteTasks, EditTask, Expected,
    ListAudit, PutSchedule, PutSettings, PutTenant, Replay, ReplayTasks, RetryTasks, SlotOrder,
    Submit, SwitchSchedule, TaskChange, TenantChange, WorkflowChange,
};
use duly_core::schedule::{Overlap, ScheduleStatus, SkipReason};
use duly_core::settings::Settings;
use duly_core::task::{NewTask, Priority};
use duly_core::tenant::Quotas;
use duly_core::workflow::{Links, Membership, NewWorkflow};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Harness;
use super::harness::{fail, retry};
use super::keys::{grant, key};
use super::schedules::{name, put as new_schedule};
use super::tenants::plain as tenant;

use super::audit::{DAY, acting, cancel_of, entry, failed, log, only, own, pause, told};

pub async fn pauses_are_written_once(harness: Harness) {
    let store = acting(&harness);
    for note in ["down", "down", "still down"] {
        pause(&store, "mail", note).await;
    }
    let mail = QueueName::new("mail").unwrap();
    for _ in 0..2 {
        store.resume_queue(&own(), &mail).await.unwrap();
    }
    let expected = [
        entry(
            "queue.pause",
            "mail",
            json!({"paused": false}),
            json!({"paused": true, "note": "down"}),
        ),
        entry("queue.pause", "mail", json!({"note": "down"}), json!({"note": "still down"})),
        entry(
            "queue.resume",
            "mail",
            json!({"paused": true, "note": "still down"}),
            json!({"paused": false}),
        ),
    ];
    assert_eq!(told(&harness).await, expected);
}

pub async fn settings_are_told_field_by_field(harness: Harness) {
    let settings = Settings { retries: 7, ..Settings::default() };
    let put = PutSettings { expected: 0, settings, comment: Some("a busy night".to_owned()) };
    for _ in 0..2 {
        acting(&harness).put_settings(put.clone()).await.unwrap();
    }
    acting(&harness).put_settings(PutSettings { expected: 7, ..put }).await.unwrap();
    let before = json!({"version": 0, "retries": Settings::default().retries});
    let after = json!({"version": 1, "retries": 7, "comment": "a busy night"});
    assert_eq!(only(&harness).await, entry("settings.put", "settings", before, after));
    let entries = log(&harness, ListAudit::default()).await;
    assert_eq!(entries[0].tenant, None, "settings are the installation's");
}

pub async fn orders_for_tasks_are_written(harness: Harness) {
    let store = acting(&harness);
    let waiting = harness.submit_one(harness.task_in("email", DAY)).await;
    for _ in 0..2 {
        store.cancel(cancel_of(&[waiting])).await.unwrap();
    }
    let again = Replay { task: waiting, run: 1, run_at: None };
    let replay = ReplayTasks { tenant: own(), tasks: vec![again], payload: None };
    for _ in 0..2 {
        store.replay(replay.clone()).await.unwrap();
    }
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    let order = RetryTasks { tenant: own(), tasks: vec![waiting] };
    for _ in 0..2 {
        assert_eq!(store.retry(order.clone()).await.unwrap(), [Controlled::Done]);
    }
    let told = told(&harness).await;
    let actions: Vec<_> = told.iter().map(|(action, target, ..)| (&**action, &**target)).collect();
    let id = waiting.to_string();
    assert_eq!(actions, [("task.cancel", &*id), ("task.replay", &*id), ("task.retry", &*id)]);
    assert_eq!(told[0].2, json!({"status": "PENDING"}));
    assert_eq!(told[0].3, json!({"status": "CANCELLED", "reason": "why"}));
    assert_eq!(told[1].2["run"], 1);
    assert_eq!((&told[1].3["run"], &told[1].3["status"]), (&json!(2), &json!("PENDING")));
    let keys = |fields: &Value| fields.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (keys(&told[2].2), keys(&told[2].3)),
        (vec!["runAt".to_owned()], vec!["runAt".to_owned()])
    );
}

pub async fn a_deletion_tells_what_is_gone(harness: Harness) {
    let id = failed(&harness).await;
    let order = DeleteTasks { tenant: own(), tasks: vec![id], before: None };
    for _ in 0..2 {
        acting(&harness).delete(order.clone()).await.unwrap();
    }
    let (action, target, before, after) = only(&harness).await;
    assert_eq!((&*action, target), ("task.delete", id.to_string()));
    assert_eq!((&before["type"], &before["status"]), (&json!("email"), &json!("FAILED")));
    assert_eq!(after, Value::Null);
}

pub async fn each_task_that_changed_has_an_entry(harness: Harness) {
    let one = harness.submit_one(harness.task("email")).await;
    let ended = failed_beside(&harness).await;
    let two = harness.submit_one(harness.task_in("email", DAY)).await;
    let unknown = harness.task("email").id;
    acting(&harness).cancel(cancel_of(&[one, ended, unknown, two])).await.unwrap();
    let targets: Vec<_> = told(&harness).await.into_iter().map(|(_, target, ..)| target).collect();
    assert_eq!(targets, [one.to_string(), two.to_string()]);
}

/// A failed task of another type.
async fn failed_beside(harness: &Harness) -> TaskId {
    let session = harness.session(&["letter"]).await;
    let id = harness.submit_one(harness.task("letter")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    id
}

pub async fn tasks_of_another_tenant_leave_no_trace(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    let tenant = TenantName::new("other").unwrap();
    let order = CancelTasks { tenant, ..cancel_of(&[id]) };
    assert_eq!(acting(&harness).cancel(order).await.unwrap(), [Controlled::Unknown]);
    assert!(told(&harness).await.is_empty());
}

pub async fn payloads_are_never_told(harness: Harness) {
    const CANARY: &str = "canary-81c0";
    let store = acting(&harness);
    let secret: Arc<str> = format!(r#"{{"password":"{CANARY}"}}"#).into();
    let task = NewTask { payload: Arc::clone(&secret), ..harness.task_in("email", DAY) };
    let id = harness.submit_one(task).await;
    let other: Arc<str> = format!(r#"{{"password":"{CANARY}2"}}"#).into();
    let change = TaskChange {
        payload: Some(other),
        priority: Priority::new(9),
        labels: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
        ..TaskChange::default()
    };
    let edit = EditTask { tenant: own(), task: id, change };
    for _ in 0..2 {
        assert_eq!(store.edit(edit.clone()).await.unwrap(), Controlled::Done);
    }
    let after = json!({"priority": 9, "labels": {"a": "b"}, "payload": "changed"});
    assert_eq!(only(&harness).await, entry("task.edit", id, json!({"priority": 5}), after));
    store.cancel(cancel_of(&[id])).await.unwrap();
    let tasks = vec![Replay { task: id, run: 1, run_at: None }];
    let replay = ReplayTasks { tenant: own(), tasks, payload: Some(secret) };
    store.replay(replay).await.unwrap();
    store.cancel(cancel_of(&[id])).await.unwrap();
    let order = DeleteTasks { tenant: own(), tasks: vec![id], before: None };
    store.delete(order).await.unwrap();
    let template: Arc<str> = format!(r#"{{"type":"email","payload":"{CANARY}"}}"#).into();
    let mut schedule = new_schedule(&harness, "nightly", 1);
    schedule.definition.template = template;
    store.put_schedule(schedule.clone()).await.unwrap();
    schedule.definition.template = Arc::from(format!(r#"{{"payload":"{CANARY}2"}}"#));
    store.put_schedule(schedule).await.unwrap();
    let told = told(&harness).await;
    assert_eq!(told.len(), 7);
    assert_eq!(told[2].3["payload"], "changed");
    assert_eq!(told[6].3["template"], "changed");
    assert!(!format!("{told:?}").contains(CANARY), "{told:?}");
}

pub async fn changes_of_schedules_are_written(harness: Harness) {
    let store = acting(&harness);
    let put = new_schedule(&harness, "nightly", 1);
    for _ in 0..2 {
        store.put_schedule(put.clone()).await.unwrap();
    }
    let other = PutSchedule { note: Some("new".to_owned()), ..put };
    store.put_schedule(other).await.unwrap();
    for status in [ScheduleStatus::Paused, ScheduleStatus::Paused, ScheduleStatus::Active] {
        let (tenant, name, expected) = (own(), name("nightly"), Expected::Any);
        store
            .switch_schedule(SwitchSchedule { tenant, name, status, note: None, expected })
            .await
            .unwrap();
    }
    let (tenant, name, expected) = (own(), name("nightly"), Expected::Any);
    let delete = DeleteSchedule { tenant, name, managed: false, expected };
    for _ in 0..2 {
        store.delete_schedule(delete.clone()).await.unwrap();
    }
    let told = told(&harness).await;
    let actions: Vec<_> = told.iter().map(|(action, target, ..)| (&**action, &**target)).collect();
    let expected =
        ["schedule.put", "schedule.put", "schedule.pause", "schedule.resume", "schedule.delete"];
    assert_eq!(actions, expected.map(|action| (action, "nightly")));
    assert_eq!((&told[0].2, &told[0].3["note"]), (&Value::Null, &json!("a note")));
    assert_eq!((&told[1].2["note"], &told[1].3["note"]), (&json!("a note"), &json!("new")));
    let status = |fields: &Value| fields["status"].clone();
    assert_ne!(status(&told[2].2), status(&told[2].3));
    assert_eq!((&told[4].2["note"], &told[4].3), (&json!("new"), &Value::Null));
}

pub async fn a_trigger_is_written(harness: Harness) {
    let put = new_schedule(&harness, "nightly", 1);
    let schedule = put.id;
    harness.store().put_schedule(put).await.unwrap();
    let decide = |slot: SlotOrder| Decide {
        schedule,
        generation: 1,
        moves: None,
        overlap: Overlap::Allow,
        slots: vec![(harness.now(), slot)],
    };
    let task = harness.task("email");
    let id = task.id;
    for _ in 0..2 {
        let decisions = vec![decide(SlotOrder::Task(Box::new(task.clone())))];
        let decided = acting(&harness).decide_slots(decisions).await.unwrap();
        assert!(matches!(decided[0], Decided::Done { .. }));
    }
    let after = json!({"slot": harness.now().to_string(), "task": id.to_string()});
    assert_eq!(only(&harness).await, entry("schedule.trigger", "nightly", Value::Null, after));
    harness.advance(Duration::from_secs(1));
    let skipped = vec![decide(SlotOrder::Skip(SkipReason::ALL[0]))];
    harness.store().decide_slots(skipped).await.unwrap();
    assert_eq!(told(&harness).await.len(), 1, "slots that no user asked for are not written");
}

/// A workflow of one task.
async fn workflow(harness: &Harness) -> WorkflowId {
    let id = WorkflowId::mint(harness.now(), 1, 7);
    let workflow = Some(Membership { id, key: "only".to_owned() });
    let links = Links { workflow, ..Links::default() };
    let task = NewTask { links: Some(Arc::new(links)), ..harness.task("email") };
    let new = NewWorkflow {
        id,
        tenant: own(),
        name: String::new(),
        labels: BTreeMap::new(),
        fail_fast: false,
        idempotency: None,
        tasks: vec![task],
    };
    harness.store().submit_workflow(new).await.unwrap();
    id
}

pub async fn changes_of_workflows_are_written(harness: Harness) {
    let store = acting(&harness);
    let id = workflow(&harness).await;
    let session = harness.session(&["email"]).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    for _ in 0..2 {
        let answer = store.retry_workflow(&own(), id).await.unwrap();
        assert!(matches!(answer, WorkflowChange::Done { .. }));
    }
    for _ in 0..2 {
        store.cancel_workflow(&own(), id, "why".to_owned()).await.unwrap();
    }
    let told = told(&harness).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((&*told[0].0, &*told[0].1), ("workflow.retry", &*id.to_string()));
    assert_eq!(told[0].2, json!({"status": "FAILED"}));
    assert_eq!(told[0].3, json!({"status": "RUNNING", "tasks": 1}));
    assert_eq!(told[1], entry("workflow.cancel", id, json!({}), json!({"cancelled": "why"})));
}

pub async fn a_replay_downstream_is_written(harness: Harness) {
    let id = failed(&harness).await;
    for _ in 0..2 {
        acting(&harness).replay_downstream(&own(), id, 1).await.unwrap();
    }
    let (action, target, before, after) = only(&harness).await;
    assert_eq!((&*action, target), ("task.replay", id.to_string()));
    assert_eq!((&before["run"], &after["run"]), (&json!(1), &json!(2)));
    assert_eq!(after["downstream"], true);
}

pub async fn a_drain_is_written(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    for draining in [true, true, false] {
        assert!(acting(&harness).drain(session, draining).await.unwrap());
    }
    let (drains, works) = (json!({"draining": true}), json!({"draining": false}));
    let expected = [
        entry("worker.drain", session, works.clone(), drains.clone()),
        entry("worker.undrain", session, drains, works),
    ];
    assert_eq!(told(&harness).await, expected);
}

/// A task that carries out an order.
fn system_task(harness: &Harness, order: &BulkOrder) -> NewTask {
    let payload = serde_json::to_string(order).unwrap().into();
    let mut task = NewTask { payload, ..harness.task("email") };
    (task.lane.task_type, task.lane.queue) = (TypeName::bulk(), QueueName::system());
    task
}

pub async fn a_bulk_action_has_one_entry(harness: Harness) {
    let store = acting(&harness);
    let order = BulkOrder {
        action: BulkAction::Replay,
        filter: "queue:mail".to_owned(),
        dead_letters: true,
        ids: None,
        reason: String::new(),
        per_second: Some(2.5),
    };
    let task = system_task(&harness, &order);
    let plain = harness.task("email");
    for _ in 0..2 {
        let tasks = vec![task.clone(), plain.clone()];
        store.submit(Submit { tasks, offer: None }).await.unwrap();
    }
    let (action, target, before, after) = only(&harness).await;
    assert_eq!((&*action, target, before), ("bulk.start", task.id.to_string(), Value::Null));
    assert_eq!((&after["action"], &after["filter"]), (&json!("replay"), &json!("queue:mail")));
    assert_eq!((&after["deadLetters"], &after["perSecond"]), (&json!(true), &json!(2.5)));
    store.cancel(cancel_of(&[task.id])).await.unwrap();
    assert_eq!(told(&harness).await[1].0, "bulk.abort");
}

pub async fn changes_of_keys_are_written(harness: Harness) {
    let store = acting(&harness);
    let (own, installation) = (key(&harness, 1, "acme"), key(&harness, 2, "*"));
    let id = own.key.id;
    for _ in 0..2 {
        store.create_key(own.clone()).await.unwrap();
    }
    store.note_key_uses(vec![id]).await.unwrap();
    assert_eq!(store.revoke_key(Some(grant("other")), id).await.unwrap(), None);
    for _ in 0..2 {
        store.revoke_key(None, id).await.unwrap();
    }
    store.create_key(installation.clone()).await.unwrap();
    let fields = |name, tenant| json!({"name": name, "tenant": tenant, "roles": ["submitter"]});
    let revoked = json!({"revokedAt": harness.now().to_string()});
    let expected = [
        entry("key.create", id, Value::Null, fields("key 1", "acme")),
        entry("key.revoke", id, json!({}), revoked),
        entry("key.create", installation.key.id, Value::Null, fields("key 2", "*")),
    ];
    assert_eq!(told(&harness).await, expected);
    let page = ListAudit { limit: 10, ..ListAudit::default() };
    let tenants: Vec<_> = log(&harness, page).await.into_iter().map(|it| it.tenant).collect();
    let acme = Some(TenantName::new("acme").unwrap());
    assert_eq!(tenants, [None, acme.clone(), acme]);
}

pub async fn a_key_created_twice_at_once_has_one_entry(harness: Harness) {
    let new = key(&harness, 1, "acme");
    let create = async |new| acting(&harness).create_key(new).await.unwrap();
    join_all((0..8).map(|_| create(new.clone()))).await;
    assert_eq!(only(&harness).await.0, "key.create");
}

pub async fn changes_of_tenants_are_written(harness: Harness) {
    let store = acting(&harness);
    let suspended =
        PutTenant { suspended: true, note: Some("unpaid".to_owned()), ..tenant("acme") };
    let limited = PutTenant {
        quotas: Quotas { schedules: Some(7), ..Quotas::default() },
        ..suspended.clone()
    };
    for put in [tenant("acme"), suspended, tenant("acme"), limited] {
        for _ in 0..2 {
            let change = store.put_tenant(put.clone()).await.unwrap();
            assert!(matches!(change, TenantChange::Done { .. }), "{change:?}");
        }
    }
    let stale = PutTenant { expected: Expected::Version(1), ..tenant("acme") };
    let change = store.put_tenant(stale).await.unwrap();
    assert_eq!(change, TenantChange::Conflict { version: Some(4) });
    let none = json!({});
    let new = json!({"version": 1, "suspended": false, "quotas": none, "settings": none});
    let is = |version: u32, suspended: bool| json!({"version": version, "suspended": suspended});
    let unpaid = json!({"version": 2, "suspended": true, "note": "unpaid"});
    let mut plain = is(3, false);
    plain["quotas"] = none.clone();
    let quotas = json!({"schedules": 7});
    let limited = json!({"version": 4, "suspended": true, "note": "unpaid", "quotas": quotas});
    let expected = [
        entry("tenant.put", "acme", Value::Null, new),
        entry("tenant.suspend", "acme", is(1, false), unpaid.clone()),
        entry("tenant.resume", "acme", unpaid, is(3, false)),
        entry("tenant.put", "acme", plain, limited),
    ];
    assert_eq!(told(&harness).await, expected);
    let page = ListAudit { limit: 10, ..ListAudit::default() };
    assert!(log(&harness, page).await.iter().all(|it| it.tenant.is_none()));
}
