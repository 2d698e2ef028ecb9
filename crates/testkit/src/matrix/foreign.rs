//! Another tenant's objects: on no route can a caller tell them from objects that do not exist, and none of
//! them changes.

use anyhow::{Context as _, ensure};
use duly_core::access::AccessRole;
use serde_json::{Value, json};

use super::objects::{self, Ids, OWNER};
use super::{ACTING, Operation, Server};
use crate::raw::Answer;

/// Lists, in which nothing of another tenant appears.
const LISTS: [&str; 8] = [
    "/v1/tasks",
    "/v1/dlq",
    "/v1/workflows",
    "/v1/schedules",
    "/v1/queues",
    "/v1/workers",
    "/v1/bulk-actions",
    "/v1/keys",
];

/// A request that names an object: its body, if it needs one.
fn body(operation: &Operation, ids: &Ids) -> Option<Value> {
    let (task, session) = (&ids["task"], &ids["session"]);
    let lease = json!({"taskId": task, "epoch": 1});
    let with = |field: &str, value: Value| {
        let mut lease = lease.clone();
        lease[field] = value;
        json!([lease])
    };
    Some(match operation.name().as_str() {
        "PATCH /v1/tasks/{id}" => json!({"priority": 7}),
        "POST /v1/sessions/{id}/heartbeat" => json!({}),
        "PUT /v1/schedules/{name}" => json!({"every": "1h", "task": {"type": "echo"}}),
        "POST /v1/schedules/{name}/backfill" => {
            json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"})
        }
        "POST /v1/bulk-actions" => json!({"action": "cancel", "ids": [task]}),
        "POST /v1/leases" => json!({"sessionId": session, "seq": 1, "max": 1}),
        "POST /v1/leases/extend" => {
            json!({"sessionId": session, "leases": with("seconds", json!(60))})
        }
        "POST /v1/leases/finish" => {
            json!({"sessionId": session, "outcomes": with("outcome", json!("success"))})
        }
        "POST /v1/leases/logs" => {
            let mut items = with("text", json!("x"));
            items[0]["offset"] = json!(0);
            json!({"sessionId": session, "items": items})
        }
        "POST /v1/leases/progress" => {
            json!({"sessionId": session, "items": with("done", json!(1))})
        }
        "POST /v1/tasks" => {
            json!({"type": "none", "dependencies": [{"taskId": task}]})
        }
        _ => return None,
    })
}

/// What may differ between two answers: the ids that were asked for, and what is made anew each time.
fn comparable(answer: &Answer, ids: &Ids) -> (u16, String, String) {
    let mask = |text: &str| {
        let mut text = text.to_owned();
        for (kind, id) in ids {
            text = text.replace(id, kind);
        }
        text
    };
    let head: Vec<_> = answer
        .head
        .lines()
        .filter(|line| !["date:", "x-request-id:"].iter().any(|name| line.starts_with(name)))
        .collect();
    if answer.status < 300 {
        // Objects of the caller's own, whose ids and times are new.
        return (answer.status, String::new(), String::new());
    }
    let mut body = answer.json();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("requestId");
    }
    (answer.status, mask(&head.join("\n")), mask(&body.to_string()))
}

impl Server<'_> {
    /// Asks for objects of another tenant, and for such that do not exist.
    pub(super) async fn foreign(&mut self, operations: &[Operation]) -> anyhow::Result<usize> {
        let theirs = self.objects().await?;
        let nobodys = objects::nobodys();
        let before = self.state(&theirs).await?;
        self.lists(&theirs).await?;
        let mut tried = 0;
        for operation in operations {
            let names_one = objects::kind(&operation.path).is_some();
            if !names_one && body(operation, &theirs).is_none() {
                continue;
            }
            for role in AccessRole::ALL.into_iter().filter(|role| operation.allows(*role)) {
                let token = self.token(ACTING, role).await?;
                let mut answers = Vec::new();
                for ids in [&theirs, &nobodys] {
                    let path = objects::fill(&operation.path, ids);
                    let call = (operation.method.as_str(), path.as_str());
                    let body = body(operation, ids);
                    let answer = self.ask(call, Some(&token), body.as_ref()).await?;
                    answers.push(comparable(&answer, ids));
                }
                let [found, absent] = &answers[..] else { unreachable!("two were asked for") };
                let name = operation.name();
                ensure!(found == absent, "{name} as {role}: {found:#?} but {absent:#?}");
                ensure!(found.0 < 500, "{name} as {role} answers {}", found.0);
                tried += 1;
            }
        }
        for (now, before) in self.state(&theirs).await?.into_iter().zip(before) {
            ensure!(now == before, "another tenant's object has changed: {before:#?} to {now:#?}");
        }
        Ok(tried)
    }

    /// How the owner sees its objects.
    async fn state(&mut self, ids: &Ids) -> anyhow::Result<Vec<(String, Value)>> {
        let token = self.keys.token_for(OWNER, "admin").await?;
        let mut state = Vec::new();
        for path in [
            "/v1/tasks/{id}",
            "/v1/tasks/{id}/explain",
            "/v1/workflows/{id}",
            "/v1/workflows/{id}/graph",
            "/v1/schedules/{name}",
            "/v1/bulk-actions/{id}",
            "/v1/queues/{queue}/stats",
        ] {
            let path = objects::fill(path, ids);
            let answer = self.ask(("GET", &path), Some(&token), None).await?;
            ensure!(answer.status == 200, "{path}: {}", answer.body);
            let mut view = answer.json();
            // What goes with the time.
            for field in [
                "oldestSeconds",
                "now",
                "startsInSeconds",
                "startedPerSecond",
                "submittedPerSecond",
            ] {
                view.as_object_mut().context("an object")?.remove(field);
            }
            state.push((path, view));
        }
        for path in ["/v1/keys", "/v1/workers"] {
            let items = self.ask(("GET", path), Some(&token), None).await?.json();
            let items = items["items"].as_array().context("no items")?.clone();
            let of_it = |item: &Value| {
                json!([item["keyId"], item["sessionId"], item["revokedAt"], item["draining"]])
            };
            state.push((path.to_owned(), items.iter().map(of_it).collect()));
        }
        Ok(state)
    }

    async fn lists(&mut self, theirs: &Ids) -> anyhow::Result<()> {
        let token = self.token(ACTING, AccessRole::Admin).await?;
        let owner = self.keys.token_for(OWNER, "admin").await?;
        for path in LISTS {
            let answer = self.ask(("GET", path), Some(&token), None).await?;
            ensure!(answer.status == 200, "{path}: {}", answer.body);
            // Each tenant has its own queues and schedules, whatever their names.
            let ids = theirs.iter().filter(|(kind, _)| !["schedule", "queue"].contains(kind));
            let items = answer.json()["items"].as_array().context("no items")?.clone();
            for (kind, id) in ids {
                let found = items.iter().find(|item| item.to_string().contains(id.as_str()));
                ensure!(found.is_none(), "{path} shows another tenant's {kind}: {found:#?}");
            }
        }
        let page = self.ask(("GET", "/v1/tasks?limit=1"), Some(&owner), None).await?.json();
        let cursor = page["nextCursor"].as_str().context("the owner has two tasks")?;
        let path = format!("/v1/tasks?limit=1&cursor={cursor}");
        let answer = self.ask(("GET", &path), Some(&token), None).await?;
        ensure!(answer.status == 400, "a foreign cursor answers {}", answer.body);
        Ok(())
    }
}
