//! Single tasks and workflows, figures, and topics that are none.

use axum::http::Method;
use duly_core::lease::Outcome;

use super::reader::{Reader, submit};
use crate::support::{Hand, ask, engine, get, post, request, router, router_of, router_over};

#[tokio::test]
async fn a_task_is_told_at_first_and_with_every_change() {
    let engine = engine();
    let router = router_over(&engine);
    let hand = Hand::of(&engine, &["a"]).await;
    let pause = ask(&router, post("/queues/default/pause", "{}")).await;
    assert_eq!(pause.status, 200);
    let id = submit(&router, "a").await;
    let mut reader = Reader::open(&router, &format!("topics=task:{id}")).await;
    let first = reader.message().await;
    assert_eq!((first.name.as_str(), &first.id), ("task", &None), "it is no place to resume from");
    let task = first.json();
    assert_eq!((task["taskId"].as_str(), task["status"].as_str()), (Some(&*id), Some("PENDING")));
    assert!(task["payload"].is_null(), "{task}");
    ask(&router, post("/queues/default/resume", "{}")).await;
    let result = "{\"page\":\n 1}".into();
    hand.end(Outcome::Success { result: Some(result) }, None).await;
    let mut last = reader.data("task").await;
    while last["status"] == "RUNNING" {
        last = reader.data("task").await;
    }
    assert_eq!((last["status"].as_str(), &last["result"]["page"]), (Some("SUCCESS"), &1.into()));
    let deleted = ask(&router, request(Method::DELETE, &format!("/tasks/{id}"), &[])).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(reader.data("gone").await["topic"], format!("task:{id}"));
}

#[tokio::test]
async fn a_workflow_is_told_with_every_change() {
    let router = router();
    let body = r#"{"name": "etl", "tasks": {"a": {"type": "a"}}}"#;
    let workflow = ask(&router, post("/workflows", body)).await.json();
    let id = workflow["workflowId"].as_str().unwrap();
    let mut reader = Reader::open(&router, &format!("topics=workflow:{id}")).await;
    let first = reader.data("workflow").await;
    assert_eq!((&first["name"], &first["status"]), (&"etl".into(), &"RUNNING".into()));
    let cancelled = ask(&router, post(&format!("/workflows/{id}/cancel"), "{}")).await;
    assert_eq!(cancelled.status, 200);
    let mut last = reader.data("workflow").await;
    while last["status"] == "RUNNING" {
        last = reader.data("workflow").await;
    }
    assert_eq!(last["status"], "CANCELLED");
}

#[tokio::test]
async fn s01_a_foreign_id_is_like_one_that_does_not_exist() {
    let engine = engine();
    let own = router_of(&engine, "acme");
    let other = router_of(&engine, "other");
    let task = submit(&own, "a").await;
    let body = r#"{"tasks": {"a": {"type": "a"}}}"#;
    let workflow = ask(&own, post("/workflows", body)).await.json();
    let workflow = workflow["workflowId"].as_str().unwrap();
    let absent = "01920000-0000-7000-8000-000000000000";
    let topics = [
        format!("task:{task}"),
        format!("task:{absent}"),
        "task:nonsense".to_owned(),
        format!("workflow:{workflow}"),
        format!("workflow:{absent}"),
        "workflow:nonsense".to_owned(),
    ];
    let mut reader = Reader::open(&other, &format!("topics={}", topics.join(","))).await;
    let mut gone = Vec::new();
    for _ in &topics {
        let message = reader.message().await;
        assert_eq!((message.name.as_str(), &message.id), ("gone", &None));
        assert_eq!(message.json().as_object().unwrap().len(), 1);
        gone.push(message.json()["topic"].as_str().unwrap().to_owned());
    }
    gone.sort_unstable();
    let mut expected = topics.to_vec();
    expected.sort_unstable();
    assert_eq!(gone, expected);
}

#[tokio::test(start_paused = true)]
async fn figures_come_once_a_second() {
    let router = router();
    submit(&router, "a").await;
    let mut reader = Reader::open(&router, "topics=stats").await;
    let begin = tokio::time::Instant::now();
    let first = reader.data("stats").await;
    let queue = &first["queues"][0];
    assert_eq!((&queue["queue"], &queue["due"]["count"]), (&"default".into(), &1.into()));
    assert!(queue["latenessSeconds"].is_f64() && queue["submittedPerSecond"].is_f64(), "{queue}");
    assert_eq!(first["totals"]["waiting"], queue["waiting"]);
    for _ in 0..3 {
        reader.data("stats").await;
    }
    let took = begin.elapsed().as_secs_f64();
    assert!((2.9..4.1).contains(&took), "{took}");
}

#[tokio::test]
async fn what_is_no_topic_is_refused() {
    let router = router();
    for query in [
        "",
        "topics=",
        "topics=stats,",
        "topics=queue:mail",
        "topics=task:",
        "topics=stats&filter=event:task.failed",
        "topics=stats&since=1m",
        "topics=stats&lastEventId=0.1.0.",
        "topics=events&filter=event:nonsense",
        "topics=events&filter=nonsense",
        "topics=events&since=nonsense",
        "topics=events&wait=61s",
        "topics=events&topics=stats",
        &format!("topics={}", ["stats"; 101].join(",")),
    ] {
        let (status, code, _) = ask(&router, get(&format!("/events?{query}"))).await.problem();
        assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"), "{query}");
    }
}
