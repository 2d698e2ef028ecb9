//! Leases of remote workers: claim, finish, extend.

use axum::Router;
use duly_core::limits::BATCH_BYTES;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, router, router_of};

const ID: &str = "01920000-0000-7000-8000-00000000000a";

/// An open session that serves `a`.
async fn session(router: &Router) -> String {
    let answer = ask(router, post("/sessions", r#"{"name":"w-1","types":["a"]}"#)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["sessionId"].as_str().unwrap().to_owned()
}

/// Submits a task of type `a` that is retried at once, and returns its id.
async fn submit(router: &Router) -> String {
    let none = json!({"strategy": "none"});
    let body = json!({"type": "a", "payload": {"n": 1}, "retries": 1, "backoff": none});
    let task = ask(router, post("/tasks", body.to_string())).await.json();
    task["taskId"].as_str().unwrap().to_owned()
}

async fn send(router: &Router, path: &str, body: &Value) -> Answer {
    ask(router, post(path, body.to_string())).await
}

async fn claim(router: &Router, session: &str, seq: u64) -> Value {
    let body = json!({"sessionId": session, "seq": seq, "max": 10});
    let answer = send(router, "/v1/leases", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["seq"], seq);
    answer.json()["leases"].clone()
}

async fn finish(router: &Router, session: &str, outcomes: Value) -> Value {
    let body = json!({"sessionId": session, "outcomes": outcomes});
    let answer = send(router, "/v1/leases/finish", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"].clone()
}

async fn status(router: &Router, task: &str) -> Value {
    ask(router, get(&format!("/tasks/{task}"))).await.json()
}

#[tokio::test]
async fn a_lease_says_all_that_a_worker_needs() {
    let router = router();
    let session = session(&router).await;
    let task = submit(&router).await;
    let leases = claim(&router, &session, 1).await;
    let lease = &leases[0];
    assert_eq!((leases.as_array().unwrap().len(), &lease["epoch"]), (1, &json!(1)));
    assert_eq!(lease["idempotencyKey"], json!(format!("{task}-1")));
    assert!(lease["deadline"].as_str() > lease["task"]["startedAt"].as_str());
    let of = |name: &str| lease["task"][name].clone();
    assert_eq!(
        (of("taskId"), of("type"), of("queue")),
        (json!(task), json!("a"), json!("default"))
    );
    assert_eq!((of("run"), of("attempt"), of("retries")), (json!(1), json!(1), json!(1)));
    assert_eq!(of("payload"), json!({"n": 1}));
    let running = status(&router, &task).await;
    assert_eq!((&running["status"], &running["worker"]), (&json!("RUNNING"), &json!("w-1")));
}

#[tokio::test]
async fn a_claim_with_the_same_number_returns_the_same_leases() {
    let router = router();
    let session = session(&router).await;
    submit(&router).await;
    let first = claim(&router, &session, 1).await;
    submit(&router).await;
    assert_eq!(claim(&router, &session, 1).await, first);
    let second = claim(&router, &session, 2).await;
    assert_ne!(second[0]["task"]["taskId"], first[0]["task"]["taskId"]);
    assert_eq!(claim(&router, &session, 3).await, json!([]));
}

#[tokio::test]
async fn a_claim_that_waits_is_answered_when_work_arrives() {
    let router = router();
    let session = session(&router).await;
    let body = json!({"sessionId": session, "seq": 1, "max": 10, "waitSeconds": 60});
    let (answer, task) = tokio::join!(send(&router, "/leases", &body), submit(&router));
    assert_eq!(answer.json()["leases"][0]["task"]["taskId"], json!(task));
}

/// A claim that waits, for some queues or types only.
fn narrowed(session: &str, seq: u64, lists: Value) -> Value {
    let mut body = json!({"sessionId": session, "seq": seq, "max": 10, "waitSeconds": 5});
    for (name, list) in lists.as_object().unwrap() {
        body[name] = list.clone();
    }
    body
}

#[tokio::test(start_paused = true)]
async fn a_narrowed_claim_brings_only_what_it_asks_for() {
    let router = router();
    let opened = ask(&router, post("/sessions", r#"{"types":["a","b"]}"#)).await.json();
    let session = opened["sessionId"].as_str().unwrap();
    let submit = async |task_type: &str, queue: &str| {
        let body = json!({"type": task_type, "queue": queue});
        let task = ask(&router, post("/tasks", body.to_string())).await.json();
        task["taskId"].clone()
    };
    let leased = async |body: Value| -> Vec<Value> {
        let answer = send(&router, "/leases", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let leases = answer.json()["leases"].as_array().unwrap().clone();
        leases.iter().map(|lease| lease["task"]["taskId"].clone()).collect()
    };
    // Tasks that wait already.
    let (old_a, old_b) = (submit("a", "q").await, submit("b", "q").await);
    assert_eq!(leased(narrowed(session, 1, json!({"types": ["b"]}))).await, [old_b]);
    // One that is submitted meanwhile is not handed to a claim that is for another type or queue.
    let only_b = json!({"types": ["b"], "queues": ["r"]});
    let (none, new_a) = tokio::join!(leased(narrowed(session, 2, only_b)), submit("a", "r"));
    assert!(none.is_empty(), "{none:?}");
    let new_b = async {
        submit("b", "q").await;
        submit("b", "r").await
    };
    let only_r = json!({"queues": ["r"], "types": ["b"]});
    let (leases, new_b) = tokio::join!(leased(narrowed(session, 2, only_r)), new_b);
    assert_eq!(leases, [new_b]);
    // The same number returns the same leases, whatever it asks for.
    assert_eq!(leased(narrowed(session, 2, json!({"types": ["a"]}))).await, leases);
    let rest = leased(narrowed(session, 3, json!({}))).await;
    assert_eq!((rest.len(), &rest[..2]), (3, &[old_a, new_a][..]));
}

#[tokio::test]
async fn a_claim_is_for_what_its_session_registered() {
    let router = router();
    let body = r#"{"types":["a","b"],"queues":["q"]}"#;
    let session = ask(&router, post("/sessions", body)).await.json()["sessionId"].clone();
    let asked = json!({"types": ["b", "c"], "queues": ["r", "q"]});
    let body = narrowed(session.as_str().unwrap(), 1, asked);
    let errors = vec!["/queues/0 NOT_REGISTERED".to_owned(), "/types/1 NOT_REGISTERED".to_owned()];
    let answer = send(&router, "/leases", &body).await;
    assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), errors));
    let answer = send(&router, "/leases", &narrowed(ID, 1, json!({"types": ["a"]}))).await;
    assert_eq!(answer.problem().1, "SESSION_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waited_long_enough_is_answered_with_nothing() {
    let router = router();
    let session = session(&router).await;
    let start = tokio::time::Instant::now();
    let body = json!({"sessionId": session, "seq": 1, "max": 10, "waitSeconds": 2.5});
    let answer = send(&router, "/leases", &body).await;
    assert_eq!(answer.json(), json!({"seq": 1, "leases": [], "lost": [], "cancel": []}));
    assert!(start.elapsed() >= std::time::Duration::from_millis(2500));
}

#[tokio::test]
async fn every_outcome_is_committed() {
    let router = router();
    let session = session(&router).await;
    for _ in 0..4 {
        submit(&router).await;
    }
    let leases = claim(&router, &session, 1).await;
    let task = |at: usize| leases[at]["task"]["taskId"].as_str().unwrap();
    let error = json!({"code": "BROKEN", "message": "no"});
    let items = finish(
        &router,
        &session,
        json!([
            {"taskId": task(0), "epoch": 1, "outcome": "success", "result": {"ok": true}},
            {"taskId": task(1), "epoch": 1, "outcome": "retry", "error": error, "log": "hello"},
            {"taskId": task(2), "epoch": 1, "outcome": "fail", "error": error},
            {"taskId": task(3), "epoch": 1, "outcome": "release"},
        ]),
    )
    .await;
    for at in 0..4 {
        assert_eq!(items[at], json!({"taskId": task(at), "epoch": 1, "status": "DONE"}));
    }
    let done = status(&router, task(0)).await;
    assert_eq!((&done["status"], &done["result"]), (&json!("SUCCESS"), &json!({"ok": true})));
    let again = status(&router, task(1)).await;
    assert_eq!((&again["status"], &again["attempt"]), (&json!("PENDING"), &json!(1)));
    let attempts = ask(&router, get(&format!("/tasks/{}/attempts", task(1)))).await.json();
    assert_eq!(attempts["items"][0]["log"], "hello");
    assert_eq!(status(&router, task(2)).await["status"], "FAILED");
    let released = status(&router, task(3)).await;
    assert_eq!((&released["status"], &released["attempt"]), (&json!("PENDING"), &json!(0)));
}

#[tokio::test]
async fn outcomes_answer_one_by_one_and_the_same_when_repeated() {
    let router = router();
    let session = session(&router).await;
    let (good, late) = (submit(&router).await, submit(&router).await);
    claim(&router, &session, 1).await;
    ask(&router, post(&format!("/tasks/{late}/cancel"), "{}")).await;
    let outcome = |task: &str| json!({"taskId": task, "epoch": 1, "outcome": "success"});
    for _ in 0..2 {
        let outcomes = json!([outcome(&good), outcome(&late), outcome(ID)]);
        let items = finish(&router, &session, outcomes).await;
        let found: Vec<_> = (0..3).map(|at| items[at]["status"].as_str().unwrap()).collect();
        assert_eq!(found, ["DONE", "LEASE_LOST", "UNKNOWN"]);
    }
}

#[tokio::test]
async fn a_retry_may_name_its_wait() {
    let router = router();
    let session = session(&router).await;
    let task = submit(&router).await;
    claim(&router, &session, 1).await;
    let error = json!({"code": "BUSY", "message": ""});
    let outcome = json!({"taskId": task, "epoch": 1, "outcome": "retry", "error": error,
        "afterSeconds": 3600});
    finish(&router, &session, json!([outcome])).await;
    assert_eq!(claim(&router, &session, 2).await, json!([]));
    let task = status(&router, &task).await;
    assert!(task["runAt"].as_str() > task["startedAt"].as_str());
}

#[tokio::test]
async fn s29_one_bad_outcome_refuses_them_all() {
    let router = router();
    let session = session(&router).await;
    let task = submit(&router).await;
    claim(&router, &session, 1).await;
    let good = json!({"taskId": task, "epoch": 1, "outcome": "success"});
    let body = json!({"sessionId": session, "outcomes": [good, {"taskId": "x", "epoch": -1}]});
    let answer = send(&router, "/leases/finish", &body).await;
    let wanted = [
        "/outcomes/1/taskId INVALID_ID",
        "/outcomes/1/epoch OUT_OF_RANGE",
        "/outcomes/1/outcome REQUIRED",
    ];
    assert_eq!(answer.problem().2, wanted);
    assert_eq!(status(&router, &task).await["status"], "RUNNING");
}

#[tokio::test]
async fn a_lease_can_be_extended() {
    let router = router();
    let session = session(&router).await;
    let task = submit(&router).await;
    let lease = claim(&router, &session, 1).await[0].clone();
    let more = |task: &str| json!({"taskId": task, "epoch": 1, "seconds": 7200});
    let body = json!({"sessionId": session, "leases": [more(&task), more(ID)]});
    let items = send(&router, "/v1/leases/extend", &body).await.json()["items"].clone();
    assert_eq!((&items[0]["status"], &items[0]["taskId"]), (&json!("DONE"), &json!(task)));
    assert!(items[0]["deadline"].as_str() > lease["deadline"].as_str());
    assert_eq!(items[1], json!({"taskId": ID, "epoch": 1, "status": "UNKNOWN"}));
}

#[tokio::test]
async fn s29_the_leases_of_others_cannot_be_touched() {
    let engine = engine();
    let (ada, bob) = (router_of(&engine, "ada"), router_of(&engine, "bob"));
    let (hers, his) = (session(&ada).await, session(&bob).await);
    let task = submit(&ada).await;
    assert_eq!(claim(&bob, &his, 1).await, json!([]));
    assert_eq!(claim(&ada, &hers, 1).await[0]["task"]["taskId"], json!(task));
    let body = json!({"sessionId": hers, "seq": 1, "max": 1});
    let stolen = send(&bob, "/leases", &body).await;
    assert_eq!(stolen.problem(), (404, "SESSION_NOT_FOUND".to_owned(), Vec::new()));
    for session in [&hers, &his] {
        let outcome = json!({"taskId": task, "epoch": 1, "outcome": "success"});
        let body = json!({"sessionId": session, "outcomes": [outcome]});
        let answer = send(&bob, "/leases/finish", &body).await;
        assert!(!answer.body.windows(4).any(|text| text == b"DONE"), "{answer:?}");
    }
    assert_eq!(status(&ada, &task).await["status"], "RUNNING");
}

#[tokio::test]
async fn a_session_that_is_not_open_gets_nothing() {
    let router = router();
    let body = json!({"sessionId": ID, "seq": 1, "max": 1, "waitSeconds": 60});
    assert_eq!(send(&router, "/leases", &body).await.problem().1, "SESSION_NOT_FOUND");
    let lease = json!({"taskId": ID, "epoch": 1, "seconds": 1});
    let body = json!({"sessionId": ID, "leases": [lease]});
    assert_eq!(send(&router, "/leases/extend", &body).await.problem().1, "SESSION_NOT_FOUND");
}

#[tokio::test]
async fn bad_requests_are_refused_field_by_field() {
    let router = router();
    let outcome = json!({"taskId": ID, "epoch": 1, "outcome": "release"});
    let with = |name: &str, value: Value| {
        let mut body = json!({"sessionId": ID, "seq": 1, "max": 1});
        body[name] = value;
        body
    };
    for (path, body, errors) in [
        ("leases", json!([]), vec![" WRONG_TYPE"]),
        ("leases", json!({}), vec!["/sessionId REQUIRED", "/seq REQUIRED", "/max REQUIRED"]),
        ("leases", with("sessionId", json!("x")), vec!["/sessionId INVALID_ID"]),
        ("leases", with("sessionId", json!(7)), vec!["/sessionId WRONG_TYPE"]),
        ("leases", with("seq", json!(0)), vec!["/seq OUT_OF_RANGE"]),
        ("leases", with("seq", json!(9_007_199_254_740_992_u64)), vec!["/seq OUT_OF_RANGE"]),
        ("leases", with("seq", json!("1")), vec!["/seq WRONG_TYPE"]),
        ("leases", with("max", json!(0)), vec!["/max OUT_OF_RANGE"]),
        ("leases", with("max", json!(1001)), vec!["/max OUT_OF_RANGE"]),
        ("leases", with("waitSeconds", json!(61)), vec!["/waitSeconds OUT_OF_RANGE"]),
        ("leases", with("waitSeconds", json!(-1)), vec!["/waitSeconds OUT_OF_RANGE"]),
        ("leases", with("waitSeconds", json!("1s")), vec!["/waitSeconds WRONG_TYPE"]),
        ("leases", with("wait", json!(1)), vec!["/wait UNKNOWN_FIELD"]),
        ("leases/finish", json!({"sessionId": ID}), vec!["/outcomes REQUIRED"]),
        ("leases/finish", json!({"sessionId": ID, "outcomes": []}), vec!["/outcomes REQUIRED"]),
        ("leases/finish", json!({"outcomes": [outcome]}), vec!["/sessionId REQUIRED"]),
        (
            "leases/finish",
            json!({"sessionId": ID, "outcomes": [7]}),
            vec!["/outcomes/0 WRONG_TYPE"],
        ),
        (
            "leases/finish",
            json!({"sessionId": ID, "outcomes": vec![&outcome; 1001]}),
            vec!["/outcomes TOO_MANY"],
        ),
        (
            "leases/extend",
            json!({"sessionId": ID, "leases": [{}]}),
            vec![
                "/leases/0/taskId REQUIRED",
                "/leases/0/epoch REQUIRED",
                "/leases/0/seconds REQUIRED",
            ],
        ),
        ("leases/extend", json!({"sessionId": ID, "leases": {}}), vec!["/leases WRONG_TYPE"]),
    ] {
        let wanted = errors.into_iter().map(str::to_owned).collect();
        let answer = send(&router, &format!("/v1/{path}"), &body).await;
        assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), wanted), "{body:.80}");
    }
    for name in ["queues", "types"] {
        for (list, error) in [
            (json!([]), format!("/{name} REQUIRED")),
            (json!(null), format!("/{name} WRONG_TYPE")),
            (json!("a"), format!("/{name} WRONG_TYPE")),
            (json!(["a", "!"]), format!("/{name}/1 INVALID_NAME")),
            (json!(vec!["a"; 1001]), format!("/{name} TOO_MANY")),
        ] {
            let answer = send(&router, "/leases", &with(name, list)).await;
            assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), vec![error]));
        }
    }
}

#[tokio::test]
async fn bodies_have_the_limit_of_their_route() {
    let router = router();
    let spaces = |count| vec![b' '; count];
    let answer = ask(&router, post("/leases/finish", spaces(BATCH_BYTES + 1))).await;
    assert_eq!(answer.problem().1, "BODY_TOO_LARGE");
    let answer = ask(&router, post("/leases/finish", spaces(BATCH_BYTES))).await;
    assert_eq!(answer.problem().1, "MALFORMED_JSON");
    for path in ["/leases", "/leases/extend", "/sessions"] {
        let answer = ask(&router, post(path, spaces(2 * 1024 * 1024))).await;
        assert_eq!(answer.problem().1, "BODY_TOO_LARGE", "{path}");
    }
}
