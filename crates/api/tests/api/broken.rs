//! A store that fails, and what callers get to hear of it.

mod nodes;

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use duly_core::id::{SessionId, TaskId};
use duly_core::name::{Lane, QueueName, TenantName};
use duly_core::ports::store::{
    Beat, Bulk, BulkStep, CancelTasks, Control, Controlled, CountTasks, DeadGroups, DeadLetters,
    DeadList, DeleteTasks, EditTask, Ending, Error, Exchange, Exchanged, Expiry, ExtendLeases,
    Extended, GroupDead, Hint, Leases, ListDead, ListQueues, ListSettings, ListTasks, LogPage,
    OpenSession, OpenedSession, PauseQueue, Place, Pulse, PurgeTasks, Put, PutSettings, QueueList,
    QueueState, Queues, ReadLogs, Reap, Reaped, ReplayTasks, Report, Reported, Reports, Result,
    RetryTasks, Sessions, SettingsLog, Snapshots, Submit, Submitted, Sweep, Swept, TaskCount,
    TaskList, Tasks, VersionedSettings, WorkerState,
};
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use duly_engine::random::OsRandom;
use duly_engine::{Config, Engine};

use crate::support::{ask, get, post, request, router_over};

/// Fails every call in one way.
struct Broken(fn() -> Error);

#[async_trait]
impl Tasks for Broken {
    async fn submit(&self, _: Submit) -> Result<Vec<Submitted>> {
        Err(self.0())
    }

    async fn get(&self, _: &TenantName, _: TaskId) -> Result<Option<Task>> {
        Err(self.0())
    }

    async fn list(&self, _: ListTasks) -> Result<TaskList> {
        Err(self.0())
    }

    async fn attempts(&self, _: &TenantName, _: TaskId) -> Result<Option<Vec<Attempt>>> {
        Err(self.0())
    }
}

#[async_trait]
impl Sessions for Broken {
    async fn open_session(&self, _: OpenSession) -> Result<()> {
        Err(self.0())
    }

    async fn beat(&self, _: Beat) -> Result<bool> {
        Err(self.0())
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        Err(self.0())
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        Err(self.0())
    }

    async fn drain(&self, _: SessionId, _: bool) -> Result<bool> {
        Err(self.0())
    }

    async fn draining(&self, _: Vec<SessionId>) -> Result<Vec<SessionId>> {
        Err(self.0())
    }

    async fn serving(&self, _: &Lane) -> Result<Vec<SessionId>> {
        Err(self.0())
    }

    async fn end_session(&self, _: SessionId, _: Ending) -> Result<Vec<TaskId>> {
        Err(self.0())
    }

    async fn keep_alive(&self, _: Vec<SessionId>) -> Result<Vec<SessionId>> {
        Err(self.0())
    }

    async fn reap(&self, _: Reap) -> Result<Reaped> {
        Err(self.0())
    }
}

#[async_trait]
impl Leases for Broken {
    async fn exchange(&self, _: Exchange) -> Result<Exchanged> {
        Err(self.0())
    }

    async fn extend(&self, _: ExtendLeases) -> Result<Vec<Extended>> {
        Err(self.0())
    }
}

#[async_trait]
impl Reports for Broken {
    async fn report(&self, _: Report) -> Result<Vec<Reported>> {
        Err(self.0())
    }

    async fn logs(&self, _: ReadLogs) -> Result<Option<LogPage>> {
        Err(self.0())
    }
}

#[async_trait]
impl DeadLetters for Broken {
    async fn dead_letters(&self, _: ListDead) -> Result<DeadList> {
        Err(self.0())
    }

    async fn dead_groups(&self, _: GroupDead) -> Result<DeadGroups> {
        Err(self.0())
    }

    async fn purge(&self, _: PurgeTasks) -> Result<Vec<Controlled>> {
        Err(self.0())
    }
}

#[async_trait]
impl Queues for Broken {
    async fn queues(&self, _: ListQueues) -> Result<QueueList> {
        Err(self.0())
    }

    async fn queue(&self, _: &TenantName, _: &QueueName) -> Result<Option<QueueState>> {
        Err(self.0())
    }

    async fn pause_queue(&self, _: PauseQueue) -> Result<bool> {
        Err(self.0())
    }

    async fn resume_queue(&self, _: &TenantName, _: &QueueName) -> Result<bool> {
        Err(self.0())
    }

    async fn place(&self, _: &TenantName, _: TaskId) -> Result<Option<Place>> {
        Err(self.0())
    }
}

#[async_trait]
impl Control for Broken {
    async fn cancel(&self, _: CancelTasks) -> Result<Vec<Controlled>> {
        Err(self.0())
    }

    async fn replay(&self, _: ReplayTasks) -> Result<Vec<Controlled>> {
        Err(self.0())
    }

    async fn retry(&self, _: RetryTasks) -> Result<Vec<Controlled>> {
        Err(self.0())
    }

    async fn edit(&self, _: EditTask) -> Result<Controlled> {
        Err(self.0())
    }
}

#[async_trait]
impl SettingsLog for Broken {
    async fn settings(&self) -> Result<VersionedSettings> {
        Err(self.0())
    }

    async fn put_settings(&self, _: PutSettings) -> Result<Put> {
        Err(self.0())
    }

    async fn settings_history(&self, _: ListSettings) -> Result<Vec<VersionedSettings>> {
        Err(self.0())
    }
}

#[async_trait]
impl Expiry for Broken {
    async fn sweep(&self, _: Sweep) -> Result<Swept> {
        Err(self.0())
    }

    async fn forget_sessions(&self, _: Timestamp) -> Result<u32> {
        Err(self.0())
    }
}

#[async_trait]
impl Bulk for Broken {
    async fn count(&self, _: CountTasks) -> Result<TaskCount> {
        Err(self.0())
    }

    async fn delete(&self, _: DeleteTasks) -> Result<Vec<Controlled>> {
        Err(self.0())
    }

    async fn carry_out(&self, _: BulkStep) -> Result<Option<Vec<Controlled>>> {
        Err(self.0())
    }
}

impl Snapshots for Broken {}

#[async_trait]
impl Pulse for Broken {
    async fn now(&self) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(1_900_000_000_000))
    }

    async fn check(&self) -> Result<()> {
        Err(self.0())
    }

    async fn hint(&self) -> Hint {
        std::future::pending().await
    }
}

fn broken(how: fn() -> Error) -> Router {
    let (store, random) = (Arc::new(Broken(how)), Arc::new(OsRandom::new()));
    router_over(&Engine::start(store, random, Config::default()))
}

/// A change of whatever version there is.
fn put(path: &str, body: &'static str) -> axum::http::Request<axum::body::Body> {
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    request(axum::http::Method::PUT, path, &headers).map(|_| body.into())
}

const ID: &str = "/tasks/01920000-0000-7000-8000-000000000000";

#[tokio::test]
async fn a_store_that_is_away_says_why_and_when_to_come_back() {
    let router = broken(|| Error::Unavailable { reason: "the disk is full; free some".to_owned() });
    for asked in [
        get(ID),
        get(&format!("{ID}?wait=1s")),
        get("/tasks"),
        post("/tasks", r#"{"type":"a"}"#),
        post("/tasks/batch", r#"[{"type":"a"}]"#),
        get(&format!("{ID}/attempts")),
        get(&format!("{ID}/logs?wait=1s")),
        get("/dlq"),
        get("/dlq/groups"),
        get(&format!("{ID}/explain")),
        get("/queues"),
        get("/queues/mail/stats"),
        post("/queues/mail/pause", ""),
        post("/queues/mail/resume", ""),
        post("/dlq/replay", "{}"),
        post("/dlq/purge", r#"{"all":true}"#),
        post("/sessions", r#"{"types":["a"]}"#),
        get("/nodes"),
        get("/settings"),
        get("/settings/history"),
        put("/settings", "{}"),
    ] {
        let answer = ask(&router, asked).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (503, "STORE_UNAVAILABLE"));
        assert_eq!(answer.headers["retry-after"], "1");
        assert!(answer.json()["detail"].as_str().unwrap().contains("the disk is full"));
    }
    let answer = ask(&router, get("/readyz?verbose")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.json()["reasons"][0].as_str().unwrap().contains("the disk is full"));
    assert_eq!(answer.json()["checks"][1], serde_json::json!({"name": "store", "ok": false}));
    assert_eq!(ask(&router, get("/livez")).await.status, 200);
}

#[tokio::test]
async fn what_is_broken_inside_stays_inside() {
    let backend = || Error::Backend { name: "test", source: "SELECT secret FROM x".into() };
    let corrupt = || Error::Corrupt { table: "secret", column: "secret", id: "secret".to_owned() };
    for router in [broken(backend), broken(corrupt)] {
        for asked in [
            get(ID),
            get("/tasks"),
            get("/dlq"),
            post("/dlq/replay", "{}"),
            post("/tasks", r#"{"type":"a"}"#),
            post("/sessions", r#"{"types":["a"]}"#),
            get("/settings"),
            put("/settings", "{}"),
        ] {
            let answer = ask(&router, asked).await;
            let (status, code, _) = answer.problem();
            assert_eq!((status, code.as_str()), (500, "INTERNAL"));
            assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
        }
        let answer = ask(&router, get("/readyz")).await;
        assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
    }
}

#[tokio::test]
async fn a_limit_of_the_store_is_the_callers_to_keep() {
    let router = broken(|| Error::TooLarge { what: "a batch of tasks", limit: 1000 });
    let answer = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await;
    let (status, code, _) = answer.problem();
    assert_eq!((status, code.as_str()), (413, "TOO_LARGE"));
}
