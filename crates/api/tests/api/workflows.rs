//! Workflows: dependencies, results, added tasks, and what is refused.

use axum::Router;
use duly_core::limits::WORKFLOW_TASKS;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, request, router, router_of};

/// A worker over REST that serves `a`.
struct Worker<'a> {
    router: &'a Router,
    session: String,
    seq: u64,
}

impl<'a> Worker<'a> {
    async fn new(router: &'a Router) -> Self {
        let answer = ask(router, post("/sessions", r#"{"name":"w-1","types":["a"]}"#)).await;
        let session = answer.json()["sessionId"].as_str().unwrap().to_owned();
        Self { router, session, seq: 0 }
    }

    async fn claim(&mut self) -> Value {
        self.claim_within(0).await
    }

    async fn claim_within(&mut self, seconds: u32) -> Value {
        let body = json!({"sessionId": self.session, "seq": self.seq + 1, "max": 100,
            "waitSeconds": seconds});
        let answer = send(self.router, "/leases", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        self.seq += u64::from(answer["leases"] != json!([]));
        answer
    }

    /// Waits for leases.
    async fn leases(&mut self) -> Vec<Value> {
        // A claim also ends when a lease is gone.
        for _ in 0..10 {
            let leases = self.claim_within(5).await["leases"].clone();
            if leases != json!([]) {
                return leases.as_array().unwrap().clone();
            }
        }
        panic!("nothing can be claimed");
    }

    async fn lease(&mut self) -> Value {
        let mut leases = self.leases().await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        leases.pop().unwrap()
    }

    async fn finish(&self, lease: &Value, outcome: Value) -> Answer {
        let mut outcome = outcome;
        outcome["taskId"] = lease["task"]["taskId"].clone();
        outcome["epoch"] = lease["epoch"].clone();
        let body = json!({"sessionId": self.session, "outcomes": [outcome]});
        send(self.router, "/leases/finish", &body).await
    }

    async fn succeed(&self, lease: &Value, result: Value) {
        let answer = self.finish(lease, json!({"outcome": "success", "result": result})).await;
        assert_eq!(answer.json()["items"][0]["status"], "DONE", "{answer:?}");
    }

    async fn fail(&self, lease: &Value) {
        let error = json!({"code": "BROKEN", "message": "it broke"});
        let answer = self.finish(lease, json!({"outcome": "fail", "error": error})).await;
        assert_eq!(answer.json()["items"][0]["status"], "DONE", "{answer:?}");
    }
}

async fn send(router: &Router, path: &str, body: &Value) -> Answer {
    ask(router, post(path, body.to_string())).await
}

async fn submit(router: &Router, body: Value) -> Value {
    let answer = send(router, "/workflows", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

async fn read(router: &Router, path: &str) -> Value {
    let answer = ask(router, get(path)).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

async fn task(router: &Router, workflow: &Value, key: &str) -> Value {
    read(router, &format!("/tasks/{}", workflow["tasks"][key].as_str().unwrap())).await
}

/// Waits until a workflow has ended.
async fn ended(router: &Router, workflow: &Value) -> Value {
    let id = workflow["workflowId"].as_str().unwrap();
    read(router, &format!("/workflows/{id}?wait=10s")).await
}

fn pointers(answer: &Answer) -> (u16, Vec<String>) {
    let (status, _, errors) = answer.problem();
    (status, errors)
}

#[tokio::test]
async fn children_wait_for_their_parents_and_get_their_results() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"name": "etl", "labels": {"customer": "42"}, "tasks": {
            "load": {"type": "a", "dependsOn": ["left", "right"], "render": true,
                "payload": {"sum": "{{ parents.left.result.n + parents.right.result.n }}",
                    "as": "{{ parents.left.result }}", "text": "n={{ parents.right.result.n }}"}},
            "left": {"type": "a", "dependsOn": ["fetch"]},
            "right": {"type": "a", "dependsOn": ["fetch"], "payload": "{{ as it is }}"},
            "fetch": {"type": "a"},
        }}),
    )
    .await;
    assert_eq!(made["status"], "RUNNING");
    assert_eq!(task(&router, &made, "load").await["status"], "BLOCKED");
    let fetch = worker.lease().await;
    assert_eq!(fetch["task"].get("parents"), None);
    worker.succeed(&fetch, json!({"url": "x"})).await;
    let both = worker.leases().await;
    assert_eq!(both.len(), 2);
    for (n, lease) in (1..).zip(&both) {
        let parent = &lease["task"]["parents"]["fetch"];
        assert_eq!(
            (&parent["status"], &parent["result"]),
            (&json!("SUCCESS"), &json!({"url": "x"}))
        );
        assert_eq!(parent["taskId"], made["tasks"]["fetch"]);
        worker.succeed(lease, json!({"n": n})).await;
    }
    let payloads: Vec<_> = both.iter().map(|lease| &lease["task"]["payload"]).collect();
    assert!(payloads.contains(&&json!("{{ as it is }}")), "it is not to be rendered: {payloads:?}");
    let load = worker.lease().await;
    let payload = &load["task"]["payload"];
    assert_eq!(payload["sum"], 3);
    assert!(payload["as"]["n"].is_number() && payload["text"].as_str().unwrap().starts_with("n="));
    worker.succeed(&load, json!(null)).await;
    let view = ended(&router, &made).await;
    assert_eq!((&view["status"], &view["name"]), (&json!("SUCCESS"), &json!("etl")));
    assert_eq!((&view["counts"]["SUCCESS"], &view["open"]), (&json!(4), &json!(0)));
    let path: Vec<_> =
        view["criticalPath"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    assert_eq!((path.len(), path[0], path[2]), (3, &json!("fetch"), &json!("load")));
    let shown = task(&router, &made, "load").await;
    assert_eq!(
        (&shown["workflowId"], &shown["workflowKey"], &shown["render"]),
        (&made["workflowId"], &json!("load"), &json!(true))
    );
    assert_eq!(shown["dependencies"].as_array().unwrap().len(), 2);
    let id = made["workflowId"].as_str().unwrap();
    let own = read(&router, &format!("/tasks?filter=workflow:{id}")).await;
    assert_eq!(own["items"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_failure_is_compensated_and_what_cannot_start_is_cancelled() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"tasks": {
            "pay": {"type": "a"},
            "ship": {"type": "a", "dependsOn": ["pay"]},
            "mail": {"type": "a", "dependsOn": ["ship"]},
            "refund": {"type": "a", "dependsOn": [{"task": "pay", "on": "failure"}]},
            "audit": {"type": "a", "dependsOn": [{"task": "mail", "on": "done"}]},
        }}),
    )
    .await;
    let pay = worker.lease().await;
    worker.fail(&pay).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let lease = worker.lease().await;
        let parents = &lease["task"]["parents"];
        seen.push(parents.as_object().unwrap().keys().next().unwrap().clone());
        worker.succeed(&lease, json!(1)).await;
    }
    seen.sort();
    assert_eq!(seen, ["mail", "pay"]);
    let view = ended(&router, &made).await;
    assert_eq!((&view["status"], &view["handledFailures"]), (&json!("SUCCESS"), &json!(1)));
    let ship = task(&router, &made, "ship").await;
    assert_eq!(
        (&ship["status"], &ship["error"]["code"]),
        (&json!("CANCELLED"), &json!("DEPENDENCY_NOT_MET"))
    );
    let parent = made["tasks"]["pay"].as_str().unwrap();
    assert!(ship["error"]["message"].as_str().unwrap().contains(parent));
}

#[tokio::test]
async fn a_retry_runs_what_failed_and_what_waited_for_it() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"tasks": {"one": {"type": "a"}, "two": {"type": "a", "dependsOn": ["one"]}}}),
    )
    .await;
    let one = worker.lease().await;
    worker.fail(&one).await;
    assert_eq!(ended(&router, &made).await["status"], "FAILED");
    let id = made["workflowId"].as_str().unwrap();
    let again = ask(&router, post(&format!("/workflows/{id}/retry"), "")).await;
    assert_eq!((again.status.as_u16(), &again.json()["status"]), (200, &json!("RUNNING")));
    for _ in 0..2 {
        let lease = worker.lease().await;
        worker.succeed(&lease, json!(1)).await;
    }
    assert_eq!(ended(&router, &made).await["status"], "SUCCESS");
    let first = made["tasks"]["one"].as_str().unwrap();
    let path = format!("/tasks/{first}/replay");
    let both = ask(&router, post(&path, r#"{"downstream":true,"payload":1}"#)).await;
    assert_eq!(pointers(&both), (422, vec!["/downstream CONFLICTING_FIELDS".to_owned()]));
    let replayed = ask(&router, post(&path, r#"{"downstream":true}"#)).await;
    assert_eq!((replayed.status.as_u16(), &replayed.json()["run"]), (200, &json!(3)));
    assert_eq!(task(&router, &made, "two").await["status"], "BLOCKED");
    let conflict = ask(&router, post(&path, r#"{"downstream":true}"#)).await;
    assert_eq!((conflict.problem().0, conflict.problem().1.as_str()), (409, "STATE_CONFLICT"));
}

#[tokio::test]
async fn a_cancelled_workflow_releases_nothing_and_takes_leases_back() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"tasks": {"one": {"type": "a"}, "two": {"type": "a", "dependsOn": ["one"]}}}),
    )
    .await;
    let one = worker.lease().await;
    let id = made["workflowId"].as_str().unwrap();
    let path = format!("/workflows/{id}/cancel");
    let cancelled = ask(&router, post(&path, r#"{"reason":"by mistake"}"#)).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(cancelled.json()["cancelReason"], "by mistake");
    let view = ended(&router, &made).await;
    assert_eq!((&view["status"], &view["counts"]["CANCELLED"]), (&json!("CANCELLED"), &json!(2)));
    let late = worker.finish(&one, json!({"outcome": "success"})).await;
    assert_eq!(late.json()["items"][0]["status"], "LEASE_LOST");
    let told = worker.claim().await;
    assert_eq!(told["cancel"][0]["taskId"], made["tasks"]["one"]);
    assert_eq!(ask(&router, post(&path, "")).await.status, 200, "cancelling again is the same");
    let retry = ask(&router, post(&format!("/workflows/{id}/retry"), "")).await;
    assert_eq!(retry.problem().1, "WORKFLOW_ENDED");
    let join = send(&router, "/tasks", &json!({"type": "a", "workflowId": id})).await;
    assert_eq!((join.problem().0, join.problem().1.as_str()), (409, "WORKFLOW_ENDED"));
}

#[tokio::test]
async fn a_success_adds_tasks_once() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"tasks": {"split": {"type": "a"},
            "end": {"type": "a", "dependsOn": ["split"], "delaySeconds": 3600}}}),
    )
    .await;
    let split = worker.lease().await;
    let then = json!({"tasks": {
        "x": {"type": "a"},
        "y": {"type": "a"},
        "sum": {"type": "a", "dependsOn": ["x", {"task": "y", "on": "done"}]},
    }});
    let outcome = json!({"outcome": "success", "result": [1], "then": then});
    for _ in 0..2 {
        let answer = worker.finish(&split, outcome.clone()).await;
        assert_eq!(answer.json()["items"][0]["status"], "DONE", "{answer:?}");
    }
    let id = made["workflowId"].as_str().unwrap();
    let graph = read(&router, &format!("/workflows/{id}/graph")).await;
    let mut keys: Vec<_> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["end", "split", "split.sum", "split.x", "split.y"]);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 5);
    let both = worker.leases().await;
    assert_eq!(both.len(), 2);
    for lease in &both {
        assert_eq!(lease["task"]["parents"]["split"]["result"], json!([1]));
        worker.succeed(lease, json!(2)).await;
    }
    let sum = worker.lease().await;
    let parents = sum["task"]["parents"].as_object().unwrap();
    assert_eq!(parents.keys().collect::<Vec<_>>(), ["split.x", "split.y"]);
    let error = json!({"code": "X", "message": "y"});
    let refused = json!({"outcome": "fail", "error": error, "then": {"tasks": {}}});
    let wanted = (422, vec!["/outcomes/0/then CONFLICTING_FIELDS".to_owned()]);
    assert_eq!(pointers(&worker.finish(&sum, refused).await), wanted);
    let cycle = json!({"tasks": {"p": {"type": "a", "dependsOn": ["p"]},
        "q": {"type": "a", "dependencies": [], "idempotencyKey": "k"}}});
    let refused = worker.finish(&sum, json!({"outcome": "success", "then": cycle})).await;
    let wanted = ["dependencies", "idempotencyKey"]
        .map(|name| format!("/outcomes/0/then/tasks/q/{name} CONFLICTING_FIELDS"));
    let mut found = pointers(&refused);
    found.1.sort();
    assert_eq!(found, (422, wanted.to_vec()));
}

#[tokio::test]
async fn a_rendering_error_fails_the_task_and_the_worker_goes_on() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let made = submit(
        &router,
        json!({"tasks": {"one": {"type": "a"}, "two": {"type": "a", "dependsOn": ["one"],
            "render": true, "payload": {"x": ["{{ parents.one.result.absent }}"]}}}}),
    )
    .await;
    let one = worker.lease().await;
    worker.succeed(&one, json!({})).await;
    let told = worker.claim().await;
    assert_eq!(told["cancel"][0]["taskId"], made["tasks"]["two"], "{told}");
    assert_eq!(ended(&router, &made).await["status"], "FAILED");
    let two = task(&router, &made, "two").await;
    assert_eq!((&two["status"], &two["error"]["code"]), (&json!("FAILED"), &json!("TEMPLATE")));
    assert!(two["error"]["message"].as_str().unwrap().contains("/x/0"), "{two}");
    let next = send(&router, "/tasks", &json!({"type": "a"})).await;
    assert_eq!(next.status, 201);
    let lease = worker.lease().await;
    assert_eq!(lease["task"]["taskId"], next.json()["taskId"]);
}

#[tokio::test]
async fn single_tasks_depend_on_others_and_join_workflows() {
    let router = router();
    let mut worker = Worker::new(&router).await;
    let first = send(&router, "/tasks", &json!({"type": "a"})).await.json();
    let id = first["taskId"].as_str().unwrap();
    let on = json!([{"taskId": id, "on": "done"}]);
    let child = send(&router, "/tasks", &json!({"type": "a", "dependencies": on})).await;
    assert_eq!(child.status, 201, "{child:?}");
    let child = child.json();
    assert_eq!((&child["status"], &child["dependencies"]), (&json!("BLOCKED"), &on));
    let child_id = child["taskId"].as_str().unwrap();
    let explained = read(&router, &format!("/tasks/{child_id}/explain")).await;
    assert_eq!(explained["reasons"][0]["code"], "BLOCKED");
    assert_eq!(explained["reasons"][0]["parents"][0]["taskId"], id);
    let lease = worker.lease().await;
    worker.fail(&lease).await;
    let delete = |id: &str| request(axum::http::Method::DELETE, &format!("/tasks/{id}"), &[]);
    let refused = ask(&router, delete(id)).await;
    assert_eq!((refused.problem().0, refused.problem().1.as_str()), (409, "OPEN_CHILDREN"));
    let lease = worker.lease().await;
    let parent = &lease["task"]["parents"][id];
    assert_eq!((&parent["status"], &parent["error"]["code"]), (&json!("FAILED"), &json!("BROKEN")));
    worker.succeed(&lease, json!(1)).await;
    assert_eq!(ask(&router, delete(id)).await.status, 204);
    let made = submit(&router, json!({"tasks": {"one": {"type": "a"}}})).await;
    let body = json!({"type": "a", "workflowId": made["workflowId"],
        "dependencies": [made["tasks"]["one"]]});
    let joined = send(&router, "/tasks", &body).await.json();
    assert_eq!(joined["workflowKey"], joined["taskId"]);
    let late =
        json!({"type": "a", "dependencies": [child_id, {"taskId": child_id, "on": "failure"}]});
    let wanted = (422, vec!["/dependencies/1 DUPLICATE_DEPENDENCY".to_owned()]);
    assert_eq!(pointers(&send(&router, "/tasks", &late).await), wanted);
}

#[tokio::test]
async fn unknown_and_foreign_tasks_answer_alike() {
    let engine = engine();
    let (own, other) = (router_of(&engine, "own"), router_of(&engine, "other"));
    let foreign = send(&other, "/tasks", &json!({"type": "a"})).await.json();
    let foreign = foreign["taskId"].as_str().unwrap();
    let unknown = "01920000-0000-7000-8000-00000000000a";
    let said = |answer: &Answer, id: &str| {
        let mut problem = answer.json();
        problem["requestId"] = Value::Null;
        (answer.status, problem.to_string().replace(id, "ID"))
    };
    let mut answers = Vec::new();
    for id in [foreign, unknown] {
        let task = send(&own, "/tasks", &json!({"type": "a", "dependencies": [id]})).await;
        let tasks = json!({"tasks": {"x": {"type": "a", "dependencies": [id]}}});
        let workflow = send(&own, "/workflows", &tasks).await;
        let wanted = (422, vec!["/tasks/x/dependencies UNKNOWN_TASK".to_owned()]);
        assert_eq!(pointers(&workflow), wanted);
        answers.push((said(&task, id), said(&workflow, id)));
    }
    assert_eq!(answers[0], answers[1]);
    let made = submit(&other, json!({"tasks": {"one": {"type": "a"}}})).await;
    let id = made["workflowId"].as_str().unwrap();
    for path in [format!("/workflows/{id}"), format!("/workflows/{id}/graph")] {
        let answer = ask(&own, get(&path)).await;
        assert_eq!((answer.problem().0, answer.problem().1.as_str()), (404, "WORKFLOW_NOT_FOUND"));
    }
    let join = send(&own, "/tasks", &json!({"type": "a", "workflowId": id})).await;
    assert_eq!(pointers(&join), (422, vec!["/workflowId UNKNOWN_WORKFLOW".to_owned()]));
}

#[tokio::test]
async fn bad_workflows_are_refused_with_pointers_and_store_nothing() {
    let router = router();
    let a = || json!({"type": "a"});
    for (tasks, wanted) in [
        (json!({}), "/tasks REQUIRED"),
        (json!([]), "/tasks WRONG_TYPE"),
        (json!({"": a()}), "/tasks/ INVALID_NAME"),
        (json!({"a b": a()}), "/tasks/a b INVALID_NAME"),
        (json!({"x": {}}), "/tasks/x/type REQUIRED"),
        (json!({"x": {"type": "a", "priority": 10}}), "/tasks/x/priority OUT_OF_RANGE"),
        (json!({"x": {"type": "a", "oops": 1}}), "/tasks/x/oops UNKNOWN_FIELD"),
        (json!({"x": {"type": "a", "dependsOn": "y"}}), "/tasks/x/dependsOn WRONG_TYPE"),
        (json!({"x": {"type": "a", "dependsOn": ["x"]}}), "/tasks/x/dependsOn/0 SELF_DEPENDENCY"),
        (json!({"x": {"type": "a", "dependsOn": ["y"]}}), "/tasks/x/dependsOn/0 UNKNOWN_TASK"),
        (
            json!({"y": a(), "x": {"type": "a", "dependsOn": ["y", {"task": "y", "on": "done"}]}}),
            "/tasks/x/dependsOn/1 DUPLICATE_DEPENDENCY",
        ),
        (
            json!({"y": a(), "x": {"type": "a", "dependsOn": [{"task": "y", "on": "maybe"}]}}),
            "/tasks/x/dependsOn/0/on UNKNOWN_WORD",
        ),
        (
            json!({"y": a(), "x": {"type": "a", "dependsOn": ["y"], "dependencies": []}}),
            "/tasks/x/dependencies CONFLICTING_FIELDS",
        ),
        (
            json!({"x": {"type": "a", "render": true, "payload": {"p": "a {{ parents. }}"}}}),
            "/tasks/x/payload/p INVALID_TEMPLATE",
        ),
        (
            json!({"x": {"type": "a", "render": true,
                "payload": "{% for i in range(1000000000) %}x{% endfor %}"}}),
            "/tasks/x/payload INVALID_TEMPLATE",
        ),
    ] {
        let answer = send(&router, "/workflows", &json!({"tasks": tasks})).await;
        assert_eq!(pointers(&answer), (422, vec![wanted.to_owned()]), "{tasks}");
    }
    let circle =
        json!({"p": {"type": "a", "dependsOn": ["q"]}, "q": {"type": "a", "dependsOn": ["p"]}});
    let answer = send(&router, "/workflows", &json!({"tasks": circle})).await;
    assert!(answer.problem().2[0].ends_with("/dependsOn CYCLE"), "{answer:?}");
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("p -> q -> p") || detail.contains("q -> p -> q"), "{detail}");
    let twice = r#"{"tasks":{"x":{"type":"a"},"x":{"type":"a"}}}"#;
    let answer = ask(&router, post("/workflows", twice)).await;
    assert_eq!(pointers(&answer), (422, vec!["/tasks/x DUPLICATE_FIELD".to_owned()]));
    let alone = send(&router, "/tasks", &json!({"type": "a", "dependsOn": ["x"]})).await;
    assert_eq!(pointers(&alone), (422, vec!["/dependsOn CONFLICTING_FIELDS".to_owned()]));
    assert_eq!(read(&router, "/tasks").await["items"], json!([]));
    assert_eq!(read(&router, "/workflows").await["items"], json!([]));
}

#[tokio::test]
async fn a_workflow_may_be_as_deep_as_it_is_large() {
    let router = router();
    let tasks = |count: usize| {
        let task = |n: usize| {
            let parents = if n == 0 { Vec::new() } else { vec![format!("k{}", n - 1)] };
            (format!("k{n}"), json!({"type": "b", "dependsOn": parents}))
        };
        (0..count).map(task).collect::<serde_json::Map<_, _>>()
    };
    let deep = submit(&router, json!({"tasks": tasks(2_000)})).await;
    let ids: Vec<_> =
        (0..2_000).map(|n| deep["tasks"][format!("k{n}")].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "ids ascend along edges");
    let many = send(&router, "/workflows", &json!({"tasks": tasks(WORKFLOW_TASKS + 1)})).await;
    assert_eq!(pointers(&many), (422, vec!["/tasks TOO_MANY".to_owned()]));
}

#[tokio::test]
async fn keys_make_a_repeated_submit_safe_and_lists_are_filtered() {
    let router = router();
    let body = json!({"name": "n", "idempotencyKey": "k", "tasks": {"x": {"type": "a"}}});
    let first = submit(&router, body.clone()).await;
    let again = send(&router, "/workflows", &body).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.clone()));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let other = json!({"name": "other", "idempotencyKey": "k", "tasks": {"x": {"type": "a"}}});
    assert_eq!(send(&router, "/workflows", &other).await.problem().1, "IDEMPOTENCY_KEY_REUSED");
    let labels = json!({"labels": {"region": "eu"}, "tasks": {"x": {"type": "a"}}});
    let second = submit(&router, labels).await;
    let ids = |page: &Value| -> Vec<Value> {
        page["items"].as_array().unwrap().iter().map(|item| item["workflowId"].clone()).collect()
    };
    let (first, second) = (&first["workflowId"], &second["workflowId"]);
    for (query, wanted) in [
        ("", vec![second, first]),
        ("?name=n", vec![first]),
        ("?labels=region:eu", vec![second]),
        ("?status=running&limit=200", vec![second, first]),
        ("?status=FAILED", vec![]),
    ] {
        let page = read(&router, &format!("/workflows{query}")).await;
        assert_eq!(ids(&page).iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    let page = read(&router, "/workflows?limit=1").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = read(&router, &format!("/workflows?limit=1&cursor={cursor}")).await;
    assert_eq!((ids(&next), &next["nextCursor"]), (vec![first.clone()], &Value::Null));
    for bad in ["status=x", "labels=x", "limit=0", "cursor=x"] {
        assert_eq!(ask(&router, get(&format!("/workflows?{bad}"))).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn identical_siblings_are_one_node_where_that_is_asked_for() {
    let router = router();
    let mut tasks = serde_json::Map::new();
    tasks.insert("split".to_owned(), json!({"type": "a"}));
    let keys: Vec<_> = (0..20).map(|n| format!("part-{n}")).collect();
    for key in &keys {
        tasks.insert(key.clone(), json!({"type": "b", "dependsOn": ["split"]}));
    }
    tasks.insert("join".to_owned(), json!({"type": "a", "dependsOn": keys}));
    let made = submit(&router, json!({"tasks": tasks})).await;
    let id = made["workflowId"].as_str().unwrap();
    let whole = read(&router, &format!("/workflows/{id}/graph?collapse=false")).await;
    assert_eq!(whole["nodes"].as_array().unwrap().len(), 22);
    let small = read(&router, &format!("/workflows/{id}/graph?collapse=true")).await;
    let counts: Vec<_> = small["nodes"].as_array().unwrap().iter().map(|it| &it["count"]).collect();
    assert_eq!(counts, [&json!(1), &json!(20), &json!(1)]);
    assert_eq!(small["edges"].as_array().unwrap().len(), 2);
}
