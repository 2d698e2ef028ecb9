//! Dead letters: list, group, replay, purge.

use std::collections::HashSet;

use axum::Router;
use duly_engine::Engine;
use serde_json::{Value, json};

use crate::support::{Hand, ask, engine, get, pause_system, post, router_of, router_over};

/// A router, and dead letters: two of `a` in `mail` that failed alike, one that did not, and one
/// of `b`. Returns their ids, the last failure last.
async fn graveyard() -> (Router, Vec<String>) {
    graveyard_of(&engine()).await
}

async fn graveyard_of(engine: &Engine) -> (Router, Vec<String>) {
    let router = router_over(engine);
    let worker = Hand::of(engine, &["a", "b"]).await;
    let mut dead = Vec::new();
    for (kind, queue, message) in [
        ("a", "mail", "order 1 not found"),
        ("a", "mail", "order 22 not found"),
        ("a", "mail", "no such user"),
        ("b", "default", "order 3 not found"),
    ] {
        let body = json!({"type": kind, "queue": queue, "payload": {"n": 1}}).to_string();
        ask(&router, post("/tasks", body)).await;
        dead.push(worker.fail("BROKEN", message).await);
    }
    (router, dead)
}

async fn list(router: &Router, query: &str) -> Value {
    let answer = ask(router, get(&format!("/v1/dlq?{query}"))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["task"]["taskId"].as_str().unwrap().to_owned()).collect()
}

async fn order(router: &Router, path: &str, body: &Value) -> Value {
    let answer = ask(router, post(path, body.to_string())).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Gives an order, and returns how many it was carried out for.
async fn done(router: &Router, path: &str, body: &Value) -> Value {
    let answer = order(router, path, body).await;
    assert_eq!(answer["more"], json!(false), "{answer}");
    let name = if path.ends_with("purge") { "purged" } else { "replayed" };
    answer[name].clone()
}

#[tokio::test]
async fn dead_letters_are_tasks_with_their_group() {
    let (router, dead) = graveyard().await;
    let page = list(&router, "limit=200").await;
    assert_eq!(ids(&page).into_iter().collect::<HashSet<_>>(), dead.into_iter().collect());
    for item in page["items"].as_array().unwrap() {
        assert_eq!(
            (&item["task"]["status"], &item["task"]["payload"]),
            (&json!("FAILED"), &json!({"n": 1}))
        );
        assert_eq!(item["errorGroup"].as_str().unwrap().len(), 16);
    }
    assert!(page["nextCursor"].is_null());
}

#[tokio::test]
async fn pages_cover_every_dead_letter_once() {
    let (router, _) = graveyard().await;
    let all = ids(&list(&router, "").await);
    let mut found = Vec::new();
    let mut query = "limit=1".to_owned();
    loop {
        let page = list(&router, &query).await;
        found.extend(ids(&page));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("limit=1&cursor={cursor}");
    }
    assert_eq!(found, all);
    let page = ask(&router, get("/tasks?limit=1")).await.json();
    let foreign = page["nextCursor"].as_str().unwrap();
    let answer = ask(&router, get(&format!("/dlq?cursor={foreign}"))).await;
    assert_eq!(answer.problem().1, "INVALID_CURSOR");
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let (router, dead) = graveyard().await;
    let group = list(&router, "filter=type:b").await["items"][0]["errorGroup"].clone();
    let group = format!("group:{}", group.as_str().unwrap());
    for (filter, wanted) in [
        ("", 4),
        ("queue:mail", 3),
        ("type:b", 1),
        ("queue:mail%20type:b", 0),
        (&group, 3),
        (&format!("{group}+queue:mail"), 2),
        ("since:1h%20status:FAILED", 4),
        ("until:PT1H", 0),
        ("since:2030-01-31T08:00:00Z", 0),
        ("error:%22not%20FOUND%22", 3),
        ("error:broken%20type:b", 1),
        ("worker:hand", 4),
        ("label.a:b", 0),
    ] {
        assert_eq!(
            ids(&list(&router, &format!("filter={filter}")).await).len(),
            wanted,
            "{filter}"
        );
    }
    assert_eq!(ids(&list(&router, "filter=type:b").await), [dead[3].clone()]);
}

#[tokio::test]
async fn a_cursor_holds_for_its_filter_only() {
    let (router, _) = graveyard().await;
    let page = list(&router, "filter=queue:mail&limit=1").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = list(&router, &format!("filter=queue:mail&cursor={cursor}")).await;
    assert_eq!(
        (ids(&next).len(), &next["scanned"], &next["partial"]),
        (2, &json!(2), &json!(false))
    );
    for other in ["", "filter=type:a&"] {
        let answer = ask(&router, get(&format!("/dlq?{other}cursor={cursor}"))).await;
        assert_eq!(answer.problem().1, "INVALID_CURSOR", "{other}");
    }
}

#[tokio::test]
async fn groups_count_what_failed_alike() {
    let (router, dead) = graveyard().await;
    let page = ask(&router, get("/v1/dlq/groups")).await.json();
    let groups = page["items"].as_array().unwrap();
    assert_eq!((groups.len(), &page["nextCursor"]), (3, &Value::Null));
    let first = &groups[0];
    assert_eq!(
        (&first["count"], &first["queue"], &first["type"]),
        (&json!(2), &json!("mail"), &json!("a"))
    );
    assert_eq!(
        (&first["code"], &first["pattern"]),
        (&json!("BROKEN"), &json!("order # not found"))
    );
    assert_eq!(first["message"], "order 22 not found");
    assert_eq!(first["sampleTaskId"], json!(dead[1]));
    assert!(first["firstFailedAt"].as_str() <= first["lastFailedAt"].as_str());
    let page = ask(&router, get("/dlq/groups?limit=1&filter=type:b")).await.json();
    assert_eq!(page["items"][0]["sampleTaskId"], json!(dead[3]));
    assert_eq!(page["items"][0]["group"], first["group"]);
}

#[tokio::test]
async fn a_replay_runs_again_what_the_filter_names() {
    let (router, dead) = graveyard().await;
    let body = json!({"filter": "queue:mail"});
    assert_eq!(done(&router, "/dlq/replay", &body).await, 3);
    assert_eq!(done(&router, "/dlq/replay", &body).await, 0);
    assert_eq!(ids(&list(&router, "").await), [dead[3].clone()]);
    let task = ask(&router, get(&format!("/tasks/{}", dead[0]))).await.json();
    assert_eq!((&task["status"], &task["run"]), (&json!("PENDING"), &json!(2)));
    let bare = crate::support::request(axum::http::Method::POST, "/dlq/replay", &[]);
    assert_eq!(ask(&router, bare).await.json()["replayed"], 1);
}

#[tokio::test]
async fn a_replay_can_be_spread() {
    let (router, dead) = graveyard().await;
    let body = json!({"perSecond": 0.01, "filter": "queue:mail"});
    assert_eq!(done(&router, "/dlq/replay", &body).await, 3);
    let mut due = Vec::new();
    for id in &dead[..3] {
        let task = ask(&router, get(&format!("/tasks/{id}"))).await.json();
        let instant = duly_core::time::Timestamp::parse(task["runAt"].as_str().unwrap()).unwrap();
        due.push(instant.millis());
    }
    due.sort_unstable();
    // The first is due at once, which is when the store takes it.
    assert_eq!(due[2] - due[1], 100_000);
    assert!((1..=100_000).contains(&(due[1] - due[0])), "{due:?}");
}

#[tokio::test]
async fn a_purge_deletes_for_ever() {
    let (router, dead) = graveyard().await;
    let body = json!({"filter": "type:b"});
    assert_eq!(done(&router, "/dlq/purge", &body).await, 1);
    let gone = ask(&router, get(&format!("/tasks/{}", dead[3]))).await;
    assert_eq!(gone.problem().1, "TASK_NOT_FOUND");
    let body = json!({"all": true});
    assert_eq!(done(&router, "/dlq/purge", &body).await, 3);
    assert_eq!(list(&router, "").await["items"], json!([]));
}

#[tokio::test]
async fn replays_and_purges_are_bulk_actions() {
    let (router, _) = graveyard().await;
    let replay = order(&router, "/dlq/replay", &json!({"filter": "type:b since:1h"})).await;
    let purge = order(&router, "/dlq/purge", &json!({"all": true})).await;
    let list = ask(&router, get("/bulk-actions")).await.json();
    for (bulk, id, expected) in [
        (&list["items"][0], &purge["bulkId"], json!(["delete", "", true, "SUCCESS", 3])),
        (
            &list["items"][1],
            &replay["bulkId"],
            json!(["replay", "type:b since:1h", true, "SUCCESS", 1]),
        ),
    ] {
        let names = ["action", "filter", "deadLetters", "status", "done"];
        assert_eq!(json!(names.map(|name| &bulk[name])), expected, "{bulk}");
        assert_eq!(&bulk["bulkId"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_takes_long_goes_on_after_the_answer() {
    let engine = engine();
    let (router, dead) = graveyard_of(&engine).await;
    done(&router, "/dlq/replay", &json!({"filter": "type:none"})).await;
    pause_system(&engine).await;
    let start = tokio::time::Instant::now();
    let answer = order(&router, "/dlq/purge", &json!({"all": true})).await;
    assert_eq!((&answer["purged"], &answer["more"]), (&json!(0), &json!(true)));
    assert_eq!(start.elapsed().as_secs(), 10);
    ask(&router, post("/queues/duly.system/resume", "")).await;
    let id = answer["bulkId"].as_str().unwrap();
    let ended = ask(&router, get(&format!("/bulk-actions/{id}?wait=60s"))).await.json();
    assert_eq!((&ended["status"], &ended["done"]), (&json!("SUCCESS"), &json!(dead.len())));
}

#[tokio::test]
async fn everything_is_deleted_only_by_those_who_say_so() {
    let (router, _) = graveyard().await;
    let empty = r#"{"filter":" status:FAILED "}"#;
    for body in ["", "{}", empty, r#"{"all":false}"#, r#"{"filter":""}"#] {
        let answer = ask(&router, post("/dlq/purge", body)).await;
        let refused = (422, "INVALID_FIELDS".to_owned(), vec!["/all REQUIRED".to_owned()]);
        assert_eq!(answer.problem(), refused, "{body}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("give a filter"));
    }
    assert_eq!(ids(&list(&router, "").await).len(), 4);
}

#[tokio::test]
async fn bad_orders_are_refused_and_change_nothing() {
    let (router, _) = graveyard().await;
    for (path, body, status, errors) in [
        ("replay", r#"{"filter":"color:red"}"#, 422, vec!["/filter INVALID_FILTER"]),
        ("replay", r#"{"filter":"status:PENDING"}"#, 422, vec!["/filter INVALID_FILTER"]),
        ("replay", r#"{"filter":7}"#, 422, vec!["/filter WRONG_TYPE"]),
        ("replay", r#"{"perSecond":0}"#, 422, vec!["/perSecond OUT_OF_RANGE"]),
        ("replay", r#"{"perSecond":-1}"#, 422, vec!["/perSecond OUT_OF_RANGE"]),
        ("replay", r#"{"perSecond":100001}"#, 422, vec!["/perSecond OUT_OF_RANGE"]),
        ("replay", r#"{"perSecond":1e400}"#, 422, vec!["/perSecond OUT_OF_RANGE"]),
        ("replay", r#"{"perSecond":"1"}"#, 422, vec!["/perSecond WRONG_TYPE"]),
        ("replay", r#"{"all":true}"#, 422, vec!["/all UNKNOWN_FIELD"]),
        ("replay", "[]", 422, vec![" WRONG_TYPE"]),
        ("replay", "{", 400, vec![]),
        ("purge", r#"{"all":1}"#, 422, vec!["/all WRONG_TYPE"]),
        ("purge", r#"{"all":true,"filter":"x"}"#, 422, vec!["/filter INVALID_FILTER"]),
        ("purge", r#"{"all":true,"all":true}"#, 422, vec!["/all DUPLICATE_FIELD"]),
        ("purge", r#"{"x":1,"y":2}"#, 422, vec!["/x UNKNOWN_FIELD", "/y UNKNOWN_FIELD"]),
    ] {
        let answer = ask(&router, post(&format!("/v1/dlq/{path}"), body)).await;
        let (found, _, found_errors) = answer.problem();
        assert_eq!(
            (found, found_errors),
            (status, errors.into_iter().map(str::to_owned).collect()),
            "{body}"
        );
    }
    assert_eq!(ids(&list(&router, "").await).len(), 4);
}

#[tokio::test]
async fn bad_parameters_say_which_and_what_is_allowed() {
    let (router, _) = graveyard().await;
    for (query, wanted) in [
        ("filter=color:red", "`color:red` at byte 0 has no known key; keys are status, queue,"),
        ("filter=queue:", "`queue:` at byte 0: queue takes a name"),
        ("filter=type:a%20type:b", "`type:b` at byte 7: type is given twice"),
        ("filter=status:PENDING", "status takes only FAILED here"),
        ("filter=status:FAILED,SUCCESS", "status takes only FAILED here"),
        ("limit=0", "from 1 to"),
        ("status=FAILED", "known are: limit"),
    ] {
        for path in ["/dlq", "/dlq/groups"] {
            let answer = ask(&router, get(&format!("{path}?{query}"))).await;
            assert_eq!(answer.problem().1, "INVALID_PARAMETER");
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(wanted), "{query}: {detail}");
        }
    }
    let answer = ask(&router, get("/dlq/groups?limit=101")).await;
    assert_eq!(answer.problem().1, "INVALID_PARAMETER");
}

#[tokio::test]
async fn the_dead_of_others_are_neither_seen_nor_touched() {
    let engine = engine();
    let (ada, bob) = (router_of(&engine, "ada"), router_of(&engine, "bob"));
    let worker = Hand::of(&engine, &["a"]).await;
    for _ in 0..2 {
        ask(&ada, post("/tasks", r#"{"type":"a"}"#)).await;
        worker.fail("BROKEN", "x").await;
    }
    assert_eq!(list(&bob, "").await["items"], json!([]));
    assert_eq!(ask(&bob, get("/dlq/groups")).await.json()["items"], json!([]));
    assert_eq!(done(&bob, "/dlq/replay", &json!({})).await, 0);
    assert_eq!(done(&bob, "/dlq/purge", &json!({"all": true})).await, 0);
    let page = list(&ada, "limit=1").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let answer = ask(&bob, get(&format!("/dlq?cursor={cursor}"))).await;
    assert_eq!(answer.problem().1, "INVALID_CURSOR");
}
