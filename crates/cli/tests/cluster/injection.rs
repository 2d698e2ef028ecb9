//! Texts that would be SQL if a statement were put together from them: stored and found as they are,
//! or refused, on both stores.

use duly_store::clock::SystemClock;
use duly_store::postgres::scratch::{self, Scratch};
use duly_testkit::Node;
use duly_testkit::raw::{Answer, Connection};
use serde_json::{Value, json};

use super::DULY;

const TEXTS: [&str; 14] = [
    "' OR '1'='1",
    "' OR 1=1 --",
    "'; DROP TABLE task; --",
    "'; DROP TABLE duly.task; --",
    "\" OR \"\"=\"",
    "') UNION SELECT null, version() --",
    "1; SELECT pg_sleep(30)",
    "' || (SELECT pg_sleep(30)) || '",
    "$$; DROP SCHEMA duly CASCADE; $$",
    "\\'; DELETE FROM task; --",
    "%' ESCAPE '%",
    "_%[a-z]*?",
    "/* */ -- #",
    "{{ 7*7 }} ${jndi:ldap://x} \u{2019} OR 1=1",
];

/// A server, and what was stored in it.
struct Target {
    node: Node,
    connection: Connection,
    stored: usize,
}

impl Target {
    async fn start(store: &str) -> anyhow::Result<Self> {
        let node =
            Node::start(DULY.as_ref(), "injected", store, &["--roles", "api,scheduler"]).await?;
        let connection = Connection::open(node.url()).await?;
        Ok(Self { node, connection, stored: 0 })
    }

    /// Sends a request that must be answered in words.
    async fn send(&mut self, method: &str, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send_as("", method, path, body).await
    }

    async fn send_as(
        &mut self,
        headers: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Answer> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let length = text.len();
        let head = format!(
            "content-type: application/json\r\ncontent-length: {length}\r\nif-match: *\r\n{headers}"
        );
        let answer = self.connection.ask(method, path, &head, text.as_bytes()).await?;
        assert!(answer.status < 500, "{method} {path} {text}: {answer:?}");
        for word in ["syntax error", "SQLITE", "pg_catalog", "near \""] {
            let is_echo = answer.status < 400 || text.contains(word);
            assert!(is_echo || !answer.body.contains(word), "{method} {path}: {answer:?}");
        }
        Ok(answer)
    }

    /// The text as data: it comes back as it is, and a filter finds it alone.
    async fn store(&mut self, text: &str) -> anyhow::Result<()> {
        let task = json!({"type": "a", "payload": {text: text}, "labels": {"k": text},
            "idempotencyKey": text});
        let answer = self.send("POST", "/v1/tasks", &task).await?;
        assert_eq!(answer.status, 201, "{answer:?}");
        self.stored += 1;
        let id = answer.json()["taskId"].clone();
        let again = self.send("POST", "/v1/tasks", &task).await?;
        assert_eq!((again.status, &again.json()["taskId"]), (200, &id));
        let path = format!("/v1/tasks/{}", id.as_str().unwrap_or_default());
        let found = self.send("GET", &path, &Value::Null).await?.json();
        assert_eq!((&found["labels"]["k"], &found["payload"][text]), (&text.into(), &text.into()));
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        let filter = encode(&format!("label.k:\"{quoted}\""));
        let list = self.send("GET", &format!("/v1/tasks?filter={filter}"), &Value::Null).await?;
        let items = list.json()["items"].as_array().cloned().unwrap_or_default();
        assert_eq!(items.len(), 1, "{text}: {list:?}");
        assert_eq!(items[0]["taskId"], id);
        Ok(())
    }

    /// The text where a name, a cursor, an id or a word is expected.
    async fn misuse(&mut self, text: &str) -> anyhow::Result<()> {
        let encoded = encode(text);
        for name in ["cursor", "filter", "limit", "sort", "order", "wait"] {
            for list in ["tasks", "dlq", "queues", "workflows", "schedules"] {
                self.send("GET", &format!("/v1/{list}?{name}={encoded}"), &Value::Null).await?;
            }
        }
        for key in ["error", "group", "worker", "workflow", "queue", "type", "status", "since"] {
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            let filter = encode(&format!("{key}:\"{quoted}\""));
            self.send("GET", &format!("/v1/tasks?filter={filter}"), &Value::Null).await?;
            self.send("GET", &format!("/v1/dlq/groups?filter={filter}"), &Value::Null).await?;
        }
        for path in ["tasks", "workflows", "bulk-actions", "schedules", "workers"] {
            self.send("GET", &format!("/v1/{path}/{encoded}"), &Value::Null).await?;
            self.send("DELETE", &format!("/v1/{path}/{encoded}"), &Value::Null).await?;
        }
        let note = json!({"note": text});
        self.send("POST", &format!("/v1/queues/{encoded}/pause"), &note).await?;
        self.send("POST", "/v1/queues/mail/pause", &note).await?;
        for (field, body) in [
            ("type", json!({"type": text})),
            ("queue", json!({"type": "a", "queue": text})),
            ("runAt", json!({"type": "a", "runAt": text})),
            ("workflowId", json!({"type": "a", "workflowId": text})),
        ] {
            let answer = self.send("POST", "/v1/tasks", &body).await?;
            assert_eq!(answer.status, 422, "{field}: {answer:?}");
        }
        self.send("PUT", "/v1/settings", &json!({"retries": 3, "comment": text})).await?;
        let worker = json!({"name": text, "types": ["b"]});
        self.send("POST", "/v1/sessions", &worker).await?;
        let reason = json!({"action": "cancel", "filter": text, "reason": text});
        self.send("POST", "/v1/bulk-actions", &reason).await?;
        let schedule = json!({"every": "1h", "task": {"type": "a", "labels": {"k": text}}});
        self.send("PUT", &format!("/v1/schedules/{encoded}"), &schedule).await?;
        let workflow = json!({"name": text, "tasks": {text: {"type": "a"}}});
        self.send("POST", "/v1/workflows", &workflow).await?;
        if text.is_ascii() {
            let tenant = format!("duly-tenant: {text}\r\n");
            let answer = self.send_as(&tenant, "GET", "/v1/tasks", &Value::Null).await?;
            assert_eq!((answer.status, answer.code().as_str()), (400, "INVALID_PARAMETER"));
        }
        Ok(())
    }
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

async fn attack(store: &str) -> anyhow::Result<()> {
    let mut target = Target::start(store).await?;
    for text in TEXTS {
        target.store(text).await?;
        target.misuse(text).await?;
    }
    let list = target.send("GET", "/v1/tasks?filter=type:a&limit=200", &Value::Null).await?;
    let items = list.json()["items"].as_array().map_or(0, Vec::len);
    assert_eq!(items, target.stored, "something was deleted or added");
    let (status, said) = target.node.terminate().await?;
    assert!(status.success() && !said.contains(" ERROR "), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s22_sql_in_every_text_is_data_on_sqlite() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    attack(&format!("sqlite:{}", data.path().join("duly.db").display())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s22_sql_in_every_text_is_data_on_postgres() -> anyhow::Result<()> {
    let Some(server) = scratch::server() else { return Ok(()) };
    let scratch = Scratch::new(&server, std::sync::Arc::new(SystemClock::default())).await;
    attack(&scratch.url()).await
}
