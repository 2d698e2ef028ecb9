//! Objects of one tenant that another one asks for.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::Server;

/// Whose they are.
pub(super) const OWNER: &str = "owner";

/// The ids and names of objects by kind.
pub(super) type Ids = BTreeMap<&'static str, String>;

/// The kind of object that a path is about.
pub(super) fn kind(path: &str) -> Option<&'static str> {
    let kinds = [
        ("/v1/tasks/{id}", "task"),
        ("/v1/workflows/{id}", "workflow"),
        ("/v1/schedules/{name}", "schedule"),
        ("/v1/bulk-actions/{id}", "bulk"),
        ("/v1/keys/{id}", "key"),
        ("/v1/sessions/{id}", "session"),
        ("/v1/workers/{id}", "session"),
        ("/v1/queues/{queue}", "queue"),
    ];
    kinds.into_iter().find(|(start, _)| path.starts_with(start)).map(|(_, kind)| kind)
}

/// Ids and names that nobody has, as long as those of real objects.
pub(super) fn nobodys() -> Ids {
    let kinds = ["task", "ended", "workflow", "bulk", "key", "session"];
    let id = |number: usize| format!("01920000-0000-7000-8000-00000000000{number}");
    let mut ids: Ids =
        kinds.into_iter().enumerate().map(|(number, kind)| (kind, id(number))).collect();
    ids.insert("schedule", "weekly".to_owned());
    ids.insert("queue", "strange".to_owned());
    ids
}

/// The path with these ids in the place of its parameters.
pub(super) fn fill(path: &str, ids: &Ids) -> String {
    let Some(id) = kind(path).and_then(|kind| ids.get(kind)) else { return path.to_owned() };
    ["{id}", "{name}", "{queue}"].iter().fold(path.to_owned(), |path, it| path.replace(it, id))
}

/// The path of something that is not there.
pub(super) fn unknown(path: &str) -> String {
    fill(path, &nobodys())
}

impl Server<'_> {
    /// One object of each kind.
    pub(super) async fn objects(&mut self) -> anyhow::Result<Ids> {
        let token = self.keys.token_for(OWNER, "admin,worker").await?;
        let mut ids = Ids::new();
        let mut make = async |kind: &'static str, call, body: Value, field: &str| {
            let answer = self.ask(call, Some(&token), Some(&body)).await?;
            ensure!(answer.status < 300, "{kind}: {}", answer.body);
            let id = answer.json()[field]
                .as_str()
                .with_context(|| format!("{kind}: {}", answer.body))?
                .to_owned();
            ids.insert(kind, id.clone());
            Ok(id)
        };
        let later = json!({"type": "echo", "queue": "private", "delaySeconds": 86_400});
        make("task", ("POST", "/v1/tasks"), later, "taskId").await?;
        let now = json!({"type": "echo", "queue": "private"});
        let ended = make("ended", ("POST", "/v1/tasks"), now, "taskId").await?;
        let workflow =
            json!({"tasks": {"a": {"type": "none"}, "b": {"type": "none", "dependsOn": ["a"]}}});
        make("workflow", ("POST", "/v1/workflows"), workflow, "workflowId").await?;
        let schedule = json!({"cron": "0 0 1 1 *", "task": {"type": "echo"}});
        make("schedule", ("PUT", "/v1/schedules/yearly"), schedule, "name").await?;
        let bulk = json!({"action": "cancel", "filter": "type:nothing-has-it"});
        make("bulk", ("POST", "/v1/bulk-actions"), bulk, "bulkId").await?;
        let key = json!({"name": "program", "roles": ["viewer"]});
        make("key", ("POST", "/v1/keys"), key, "keyId").await?;
        let session = json!({"name": "remote", "types": ["remote"]});
        make("session", ("POST", "/v1/sessions"), session, "sessionId").await?;
        ids.insert("queue", "private".to_owned());
        // The task ends before its state is compared.
        let path = format!("/v1/tasks/{ended}?wait=30s");
        let answer = self.ask(("GET", &path), Some(&token), None).await?;
        ensure!(answer.json()["status"] == "SUCCESS", "{}", answer.body);
        Ok(ids)
    }
}
