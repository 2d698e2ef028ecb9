//! The full stream: filters, places, and what is missed.

use std::time::Duration;

use axum::http::Method;
use duly_client::wire::CloudEvent;
use duly_core::event::EventKind;
use duly_core::lease::Outcome;
use serde_json::{Value, json};

use super::reader::{Reader, submit};
use crate::support::{Hand, ask, engine, get, post, request, router, router_of, router_over};

const CREATED: &str = "topics=events&filter=event:task.created";

/// The subject of the next event, which must be of this type.
async fn subject_of(reader: &mut Reader, kind: EventKind) -> String {
    let message = reader.message().await;
    assert_eq!(message.name, "event");
    assert!(message.id.is_some(), "{message:?}");
    let event: CloudEvent = serde_json::from_value(message.json()).unwrap();
    assert_eq!(event.kind(), Some(kind));
    event.subject
}

async fn created(reader: &mut Reader) -> String {
    subject_of(reader, EventKind::TaskCreated).await
}

#[tokio::test]
async fn every_change_is_an_event_and_no_payload_is_in_it() {
    let engine = engine();
    let router = router_over(&engine);
    let hand = Hand::of(&engine, &["a"]).await;
    let mut reader = Reader::open(&router, "topics=events").await;
    let id = submit(&router, "a").await;
    hand.end(Outcome::Success { result: Some("7".into()) }, None).await;
    let mut types = Vec::new();
    loop {
        let message = reader.message().await;
        assert!(!message.data.as_ref().unwrap().contains("hidden"), "{message:?}");
        let event = message.json();
        assert_eq!((&event["subject"], &event["source"]), (&json!(id), &json!("/tenants/default")));
        types.push(event["type"].as_str().unwrap().to_owned());
        if types.last().unwrap() == "dev.duly.task.succeeded.v1" {
            assert_eq!((&event["run"], &event["epoch"]), (&1.into(), &1.into()));
            assert_eq!(event["data"]["result"], 7);
            assert!(event["data"]["payload"].is_null());
            break;
        }
    }
    let expected = ["created", "started", "succeeded"].map(|it| format!("dev.duly.task.{it}.v1"));
    assert_eq!(types, expected);
}

#[tokio::test]
async fn events_name_the_trace_of_their_task() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let router = router();
    let mut reader = Reader::open(&router, CREATED).await;
    submit(&router, "a").await;
    assert!(reader.data("event").await.get("traceparent").is_none());
    let headers = [("content-type", "application/json"), ("traceparent", TRACE)];
    let traced = request(Method::POST, "/tasks", &headers).map(|_| r#"{"type":"a"}"#.into());
    assert_eq!(ask(&router, traced).await.status, 201);
    assert_eq!(reader.data("event").await["traceparent"], TRACE);
}

#[tokio::test]
async fn s02_events_of_other_tenants_are_not_told() {
    let engine = engine();
    let (own, other) = (router_of(&engine, "acme"), router_of(&engine, "other"));
    let mut reader = Reader::open(&own, CREATED).await;
    submit(&other, "a").await;
    let id = submit(&own, "a").await;
    assert_eq!(created(&mut reader).await, id);
}

#[tokio::test]
async fn a_filter_means_what_it_says() {
    let router = router();
    let filter = "topics=events&filter=event:task.created,task.cancelled%20type:b";
    let mut reader = Reader::open(&router, filter).await;
    submit(&router, "a").await;
    let id = submit(&router, "b").await;
    assert_eq!(created(&mut reader).await, id);
    ask(&router, post(&format!("/tasks/{id}/cancel"), "{}")).await;
    assert_eq!(subject_of(&mut reader, EventKind::TaskCancelled).await, id);
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_and_repeats_nothing() {
    let router = router();
    let mut reader = Reader::open(&router, CREATED).await;
    let mut expected = std::collections::VecDeque::new();
    for n in 0..30 {
        for _ in 0..=n % 3 {
            expected.push_back(submit(&router, "a").await);
        }
        let read = if n % 4 == 0 { 0 } else { 1 + n % 2 };
        for _ in 0..read.min(expected.len()) {
            assert_eq!(Some(created(&mut reader).await), expected.pop_front(), "{n}");
        }
        // It goes away, now and then before it has seen anything.
        let place = reader.place.take().unwrap();
        drop(reader);
        expected.push_back(submit(&router, "a").await);
        reader = if n % 2 == 0 {
            Reader::open_with(&router, CREATED, &[("last-event-id", &place)]).await
        } else {
            Reader::open(&router, &format!("{CREATED}&lastEventId={place}")).await
        };
    }
    for id in expected {
        assert_eq!(created(&mut reader).await, id);
    }
}

#[tokio::test]
async fn the_header_counts_before_the_query_which_a_browser_repeats() {
    let router = router();
    let mut reader = Reader::open(&router, CREATED).await;
    let begin = reader.place.clone().unwrap();
    for _ in 0..2 {
        submit(&router, "a").await;
        created(&mut reader).await;
    }
    let seen = reader.place.clone().unwrap();
    let id = submit(&router, "a").await;
    for query in [format!("{CREATED}&lastEventId={begin}"), format!("{CREATED}&since=1h")] {
        let mut again = Reader::open_with(&router, &query, &[("last-event-id", &seen)]).await;
        assert_eq!(created(&mut again).await, id, "{query}");
    }
}

#[tokio::test]
async fn what_is_no_place_is_refused() {
    let router = router();
    for bad in ["x", "1", "1.2", "1.2.3", "-1.2.3.", "1.2.3.x", "0.1.0.';drop"] {
        let parameter = bad.replace(';', "%3B");
        let asked = [
            request(Method::GET, &format!("/events?{CREATED}"), &[("last-event-id", bad)]),
            get(&format!("/events?{CREATED}&lastEventId={parameter}")),
        ];
        for asked in asked {
            let (status, code, _) = ask(&router, asked).await.problem();
            assert_eq!((status, code.as_str()), (400, "INVALID_POSITION"), "{bad}");
        }
    }
}

#[tokio::test]
async fn a_place_that_is_not_kept_resets_the_reader() {
    let router = router();
    drop(Reader::open(&router, CREATED).await);
    let foreign = [("last-event-id", "0.4711.0.")];
    let mut reader = Reader::open_with(&router, CREATED, &foreign).await;
    let reset = reader.message().await;
    assert_eq!((reset.name.as_str(), reset.data.as_deref()), ("reset", Some("{}")));
    let id = submit(&router, "a").await;
    assert_eq!(created(&mut reader).await, id);
    // The message had a place: a reader that resumes there is not reset again.
    let place = reset.id.unwrap();
    let mut again = Reader::open_with(&router, CREATED, &[("last-event-id", &place)]).await;
    assert_eq!(created(&mut again).await, id);
}

#[tokio::test]
async fn a_stream_may_begin_with_what_is_kept() {
    let engine = engine();
    let router = router_over(&engine);
    let mut first = Reader::open(&router, CREATED).await;
    let id = submit(&router, "a").await;
    let event = first.data("event").await;
    let mut second = Reader::open(&router, &format!("{CREATED}&since=1m")).await;
    assert_eq!(second.data("event").await, event);
    let next = submit(&router, "a").await;
    assert_eq!(created(&mut second).await, next);
    let then = engine.now().await.unwrap();
    while engine.now().await.unwrap() == then {
        tokio::task::yield_now().await;
    }
    // An instant after it leaves it out.
    let mut third = Reader::open(&router, &format!("{CREATED}&since=2099-01-01T00:00:00Z")).await;
    let last = submit(&router, "a").await;
    let mut shown = created(&mut third).await;
    if shown == next {
        // It happened in the very millisecond in which the stream was opened.
        shown = created(&mut third).await;
    }
    assert_eq!((shown, &event["subject"]), (last, &id.into()));
}

/// A filter that means few events does not lose its place.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_tells_how_far_the_reader_is() {
    let router = router();
    let mut reader = Reader::open(&router, "topics=events&filter=event:task.failed").await;
    let begin = reader.place.clone().unwrap();
    submit(&router, "a").await;
    let asked = tokio::time::Instant::now();
    let heartbeat = reader.block().await.unwrap();
    assert!(heartbeat.is_heartbeat && heartbeat.data.is_none(), "{heartbeat:?}");
    assert_eq!(asked.elapsed().as_secs(), 15);
    let place = heartbeat.id.unwrap();
    assert_ne!(place, begin);
    let mut again = Reader::open(&router, &format!("{CREATED}&lastEventId={place}")).await;
    let id = submit(&router, "a").await;
    assert_eq!(created(&mut again).await, id, "what came before the heartbeat was seen");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_gives_signs_of_life() {
    let router = router();
    let topic = "topics=task:01920000-0000-7000-8000-000000000000";
    let mut reader = Reader::open(&router, topic).await;
    reader.data("gone").await;
    let begin = tokio::time::Instant::now();
    for n in 1..4 {
        let heartbeat = reader.block().await.unwrap();
        assert!(heartbeat.is_heartbeat && heartbeat.id.is_none(), "{heartbeat:?}");
        assert!(begin.elapsed() <= Duration::from_secs(15) * n);
    }
}

#[tokio::test]
async fn events_keep_the_published_schemas() {
    let router = router();
    let schema = ask(&router, get("/events/schemas")).await.json();
    let mut reader = Reader::open(&router, "topics=events").await;
    submit(&router, "a").await;
    ask(&router, post("/queues/default/pause", r#"{"note": "full"}"#)).await;
    for kind in ["task.created", "queue.paused"] {
        let event = reader.data("event").await;
        let defined = &schema["$defs"][format!("dev.duly.{kind}.v1")];
        assert_eq!(event["type"], defined["properties"]["type"]["const"]);
        assert_has_required(&event, defined);
        let data = &defined["properties"]["data"]["anyOf"][0]["$ref"];
        let name = data.as_str().unwrap().rsplit('/').next().unwrap();
        assert_has_required(&event["data"], &schema["$defs"][name]);
    }
}

fn assert_has_required(value: &Value, schema: &Value) {
    let required = schema["required"].as_array().unwrap();
    assert!(!required.is_empty());
    for name in required {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{name}: {value}");
    }
    let known = schema["properties"].as_object().unwrap();
    for name in value.as_object().unwrap().keys() {
        assert!(known.contains_key(name), "{name}: {value}");
    }
}
