//! Callers and workers that mean harm: what they send is refused in words, and nothing of it is
//! applied. The numbers are those of the security checklist.

use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::support::{ask, engine, get, operations, post, request, router, router_over};

const ID: &str = "01920000-0000-7000-8000-00000000000a";
/// What the server alone decides, in the spellings that other systems use.
const SERVERS_OWN: [&str; 20] = [
    "tenant",
    "tenantId",
    "tenant_id",
    "status",
    "state",
    "attempt",
    "epoch",
    "run",
    "role",
    "roles",
    "isAdmin",
    "createdAt",
    "created_at",
    "created_by",
    "createdBy",
    "taskId",
    "task_id",
    "id",
    "__proto__",
    "constructor",
];

/// The names of the fields that a body may have, by the document.
fn known_fields(schema: &Value, schemas: &Value, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        known_fields(&schemas[name], schemas, found);
    }
    for list in ["oneOf", "allOf", "anyOf"] {
        for part in schema[list].as_array().into_iter().flatten() {
            known_fields(part, schemas, found);
        }
    }
    found.extend(schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned());
}

/// The example of a body, or an empty one.
fn example(content: &Value, schemas: &Value) -> Value {
    let name = content["schema"]["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let of_schema = name.map(|name| schemas[name]["example"].clone());
    let own = content.get("example").cloned();
    own.or(of_schema).filter(|it| !it.is_null()).unwrap_or_else(|| json!({}))
}

#[tokio::test]
async fn s05_fields_of_the_server_are_never_taken_from_a_body() {
    let router = router();
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let schemas = &document["components"]["schemas"];
    let mut tried = 0;
    for (method, path, operation) in operations() {
        let content = &operation["requestBody"]["content"]["application/json"];
        if content.is_null() {
            continue;
        }
        let mut known = Vec::new();
        known_fields(&content["schema"], schemas, &mut known);
        let Value::Object(body) = example(content, schemas) else { continue };
        let at =
            path.replace("{id}", ID).replace("{queue}", "default").replace("{name}", "nightly");
        for field in SERVERS_OWN.iter().filter(|field| !known.iter().any(|it| it == *field)) {
            let mut body = body.clone();
            body.insert((*field).to_owned(), json!("other"));
            let headers = [("content-type", "application/json"), ("if-match", "*")];
            let asked = request(method.clone(), &at, &headers);
            let asked = asked.map(|_| Value::Object(body).to_string().into());
            let answer = ask(&router, asked).await;
            // Where the path names something, its absence may be noticed first.
            let is_absent = at != path && answer.status == 404;
            assert!(is_absent || answer.status == 422, "{method} {path} {field}: {answer:?}");
            let named = format!("/{field} UNKNOWN_FIELD");
            assert!(
                is_absent || answer.problem().2.contains(&named),
                "{method} {path}: {answer:?}"
            );
            tried += 1;
        }
    }
    assert!(tried > 200, "only {tried} bodies");
    let stored = ask(&router, get("/tasks")).await.json();
    assert_eq!(stored["items"], json!([]), "a refused body stored something");
}

#[tokio::test]
async fn s05_fields_of_the_server_are_refused_inside_lists_too() {
    let router = router();
    let task = json!({"type": "echo", "status": "SUCCESS", "tenantId": "other"});
    let schedule = json!({"every": "1h", "task": {"type": "echo", "tenantId": "other"}});
    for (method, path, body) in [
        (Method::POST, "/workflows", json!({"name": "w", "tasks": {"a": task}})),
        (Method::PUT, "/schedules/nightly", schedule),
    ] {
        let headers = [("content-type", "application/json"), ("if-match", "*")];
        let asked = request(method, path, &headers).map(|_| body.to_string().into());
        let answer = ask(&router, asked).await;
        let (status, _, errors) = answer.problem();
        assert_eq!(status, 422, "{path}: {answer:?}");
        let is_named = |error: &String| error.ends_with("/tenantId UNKNOWN_FIELD");
        assert!(errors.iter().any(is_named), "{path}: {errors:?}");
    }
    let batch = ask(&router, post("/tasks/batch", r#"[{"type":"a","epoch":7}]"#)).await;
    let code = &batch.json()["items"][0]["problem"]["code"];
    assert_eq!(code, "INVALID_FIELDS", "{batch:?}");
    // A payload belongs to the caller, whatever its fields are called.
    let free = json!({"type": "a", "payload": {"status": "SUCCESS", "tenantId": "other"}});
    let task = ask(&router, post("/tasks", free.to_string())).await.json();
    assert_eq!(task["status"], "PENDING");
}

#[tokio::test]
async fn s17_headers_that_a_task_may_not_set_are_refused_at_submit() {
    let router = router();
    for (name, value) in [
        ("X-Line", "a\r\nB: c"),
        ("X-Line", "a\nb"),
        ("X\r\nY", "a"),
        ("X Y", "a"),
        ("Host", "other"),
        ("Content-Length", "1"),
        ("transfer-encoding", "chunked"),
        ("Connection", "close"),
        ("Upgrade", "h2c"),
        ("Proxy-Authorization", "x"),
        ("Duly-Task-Id", "x"),
    ] {
        let task = json!({"type": "http", "payload": {"url": "http://x.example", "headers": {name: value}}});
        let pointer = format!("/payload/headers/{name} INVALID_HEADER");
        let answer = ask(&router, post("/tasks", task.to_string())).await;
        assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), vec![pointer.clone()]));
        let batch = ask(&router, post("/tasks/batch", json!([task]).to_string())).await.json();
        assert_eq!(batch["items"][0]["problem"]["code"], "INVALID_FIELDS", "{name}");
        let workflow = json!({"name": "w", "tasks": {"a": task}});
        let answer = ask(&router, post("/workflows", workflow.to_string())).await;
        assert_eq!(answer.problem().2, [format!("/tasks/a{pointer}")]);
        let schedule = json!({"every": "1h", "task": task});
        let headers = [("content-type", "application/json"), ("if-match", "*")];
        let put = request(Method::PUT, "/schedules/nightly", &headers);
        let answer = ask(&router, put.map(|_| schedule.to_string().into())).await;
        assert_eq!(answer.problem().2, [format!("/task{pointer}")]);
    }
    let nul = r#"{"type":"http","payload":{"headers":{"x":"a\u0000"}}}"#;
    assert_eq!(ask(&router, post("/tasks", nul)).await.problem().0, 422);
    // The headers of another type are the business of its handler.
    let other = r#"{"type":"mine","payload":{"headers":{"Host":"other"}}}"#;
    assert_eq!(ask(&router, post("/tasks", other)).await.status, 201);
}

#[tokio::test]
async fn s17_mails_with_line_breaks_in_their_head_are_refused_at_submit() {
    let router = router();
    let end = "\r\nBcc: eve@example.com";
    for (payload, refused) in [
        (json!({"to": format!("a@b{end}"), "subject": "s"}), "/payload/to INVALID_ADDRESS"),
        (json!({"to": [format!("A{end} <a@b>")], "subject": "s"}), "/payload/to/0 INVALID_ADDRESS"),
        (json!({"to": "a@b", "cc": ["c@d\n"], "subject": "s"}), "/payload/cc/0 INVALID_ADDRESS"),
        (json!({"to": "a@b", "subject": format!("s{end}")}), "/payload/subject INVALID_HEADER"),
        (json!({"to": "a@b\0", "subject": "s"}), "/payload NUL_CHARACTER"),
    ] {
        let task = json!({"type": "email", "payload": payload});
        let (status, code, errors) = ask(&router, post("/tasks", task.to_string())).await.problem();
        assert_eq!((status, code.as_str()), (422, "INVALID_FIELDS"), "{payload}");
        assert!(errors.iter().any(|error| error == refused), "{payload}: {errors:?}");
        let schedule = json!({"every": "1h", "task": task});
        let asked = request(
            Method::PUT,
            "/schedules/mails",
            &[("content-type", "application/json"), ("if-match", "*")],
        );
        let answer = ask(&router, asked.map(|_| schedule.to_string().into())).await;
        assert_eq!(answer.problem().0, 422, "{payload}");
        let workflow = json!({"name": "w", "tasks": {"a": task}});
        let answer = ask(&router, post("/workflows", workflow.to_string())).await;
        assert_eq!(answer.problem().0, 422, "{payload}");
    }
}

#[tokio::test]
async fn s21_expensive_expressions_are_answered_at_once() {
    let router = router_over(&engine());
    let bound = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
    let encode =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let crons = [
        "* * 31 2 *".to_owned(),
        "0 0 31 2 * 9999".to_owned(),
        "0 0 29 2 1#5".to_owned(),
        "*/1 * * * * *".to_owned(),
        "*,".repeat(490) + "* * * * *",
    ];
    let mut asked = Vec::new();
    for cron in crons {
        let rule = json!({"cron": cron, "startAt": "9999-01-01T00:00:00Z"});
        asked.push(post("/schedules/preview", rule.to_string()));
        asked.push(post("/schedules/preview", json!({"cron": cron}).to_string()));
    }
    for filter in [
        "(((((((".repeat(500),
        "\"".repeat(4001),
        "error:(a+)+$ ".to_owned(),
        "label.a:".to_owned() + &"a".repeat(8000),
        "status:PENDING ".repeat(500),
    ] {
        asked.push(get(&format!("/tasks?filter={}", encode(&filter))));
    }
    for template in
        ["{{ ((((((((((((1)))))))))))) }}".repeat(100), "{{".repeat(4000), "{% for %}".repeat(500)]
    {
        let task = json!({"type": "a", "render": true, "payload": template});
        asked.push(post("/tasks", task.to_string()));
    }
    for one in asked {
        let about = format!("{} {:.60}", one.method(), one.uri());
        let start = Instant::now();
        let answer = ask(&router, one).await;
        assert!(start.elapsed() < bound, "{about} took {:?}", start.elapsed());
        assert!(answer.status.as_u16() < 500, "{about}: {answer:?}");
    }
}

#[tokio::test]
async fn s29_answers_of_workers_are_not_trusted() {
    let router = router();
    let opened = ask(&router, post("/sessions", r#"{"name":"w-1","types":["a"]}"#)).await.json();
    let session = opened["sessionId"].as_str().unwrap();
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json()["taskId"].clone();
    let claim = json!({"sessionId": session, "seq": 1, "max": 1});
    assert_eq!(ask(&router, post("/leases", claim.to_string())).await.status, 200);
    let finish = |outcome: String| {
        post("/leases/finish", format!(r#"{{"sessionId":"{session}","outcomes":[{outcome}]}}"#))
    };
    let with = |rest: &str| format!(r#"{{"taskId":{task},"epoch":1,{rest}}}"#);
    for (outcome, status, error) in [
        (with(r#""outcome":"success","result":NaN"#), 400, None),
        (with(r#""outcome":"success","result":Infinity"#), 400, None),
        (with(r#""outcome":"success","result":{"a":"\ud800"}"#), 422, Some("INVALID_UNICODE")),
        (with(r#""outcome":"success","result":"\u0000""#), 422, Some("NUL_CHARACTER")),
        (with(r#""outcome":"SUCCESS""#), 422, Some("UNKNOWN_WORD")),
        (with(r#""outcome":"deleted""#), 422, Some("UNKNOWN_WORD")),
        (with(r#""outcome":7"#), 422, Some("WRONG_TYPE")),
        (with(r#""outcome":"success","tenant":"other""#), 422, Some("UNKNOWN_FIELD")),
        (
            with(r#""outcome":"fail","error":{"code":"a b","message":""}"#),
            422,
            Some("INVALID_CODE"),
        ),
        (
            format!(r#"{{"taskId":{task},"epoch":1e99,"outcome":"success"}}"#),
            422,
            Some("OUT_OF_RANGE"),
        ),
    ] {
        let answer = ask(&router, finish(outcome.clone())).await;
        let (found, _, errors) = answer.problem();
        assert_eq!(found, status, "{outcome}: {answer:?}");
        let has = |code: &str| errors.iter().any(|error| error.ends_with(code));
        assert!(error.is_none_or(has), "{outcome}: {errors:?}");
    }
    let deep =
        with(&format!(r#""outcome":"success","result":{}1{}"#, "[".repeat(100), "]".repeat(100)));
    assert_eq!(ask(&router, finish(deep)).await.problem().0, 422);
    for foreign in [
        format!(r#"{{"taskId":"{ID}","epoch":1,"outcome":"success"}}"#),
        with(r#""outcome":"success""#).replace(r#""epoch":1"#, r#""epoch":2"#),
    ] {
        let items = ask(&router, finish(foreign)).await.json()["items"].clone();
        assert_ne!(items[0]["status"], "DONE", "{items}");
    }
    let path = format!("/tasks/{}", task.as_str().unwrap());
    assert_eq!(ask(&router, get(&path)).await.json()["status"], "RUNNING");
}
