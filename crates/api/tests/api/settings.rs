//! The settings: read, change, history, rollback, and what becomes of tasks.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, request, router, router_over};

async fn put(router: &Router, version: Option<&str>, body: &str) -> Answer {
    send(router, Method::PUT, "/settings", version, body).await
}

async fn roll_back(router: &Router, version: Option<&str>, body: &str) -> Answer {
    send(router, Method::POST, "/settings/rollback", version, body).await
}

async fn send(
    router: &Router,
    method: Method,
    path: &str,
    version: Option<&str>,
    body: &str,
) -> Answer {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(version.map(|version| ("if-match", version)));
    ask(router, request(method, path, &headers).map(|_| body.to_owned().into())).await
}

fn defaults() -> Value {
    json!({
        "retries": 3,
        "backoff": {"strategy": "exponential", "baseSeconds": 1.0, "factor": 2.0,
            "capSeconds": 3600.0, "jitter": "full"},
        "workerConcurrency": null,
        "lossLimit": null,
        "retention": {"successSeconds": 604_800.0, "failedSeconds": null,
            "cancelledSeconds": 604_800.0},
        "redact": [],
    })
}

#[tokio::test]
async fn before_the_first_change_there_are_defaults() {
    let answer = ask(&router(), get("/v1/settings")).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["etag"]), (200, &"\"0\"".parse().unwrap()));
    let expected = json!({"version": 0, "changedAt": null, "comment": null,
        "settings": defaults(), "effective": {"workerConcurrency": 0, "lossLimit": 10}});
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn a_change_replaces_everything() {
    let router = router();
    let whole = json!({
        "retries": 5,
        "backoff": {"strategy": "fixed", "baseSeconds": 0.25, "factor": 1.5, "capSeconds": 60,
            "jitter": "none"},
        "workerConcurrency": 32,
        "lossLimit": 3,
        "retention": {"successSeconds": null, "failedSeconds": 86_400.5, "cancelledSeconds": 1},
        "comment": "a busy night",
    });
    let answer = put(&router, Some("\"0\""), &whole.to_string()).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["etag"]), (200, &"\"1\"".parse().unwrap()));
    let view = answer.json();
    assert_eq!((&view["version"], &view["comment"]), (&json!(1), &json!("a busy night")));
    assert!(view["changedAt"].is_string());
    assert_eq!(view["effective"]["lossLimit"], 3);
    assert_eq!(view["effective"]["workerConcurrency"], 0, "this server has no worker");
    let settings = &view["settings"];
    assert_eq!((&settings["retries"], &settings["lossLimit"]), (&json!(5), &json!(3)));
    assert_eq!(settings["retention"]["successSeconds"], Value::Null, "for ever");
    assert_eq!(settings["retention"]["failedSeconds"], 86_400.5);
    assert_eq!(settings["backoff"]["strategy"], "fixed");
    assert_eq!(ask(&router, get("/settings")).await.json(), view);

    let answer = put(&router, Some("\"1\""), r#"{"retries":7,"comment":null}"#).await;
    let mut expected = defaults();
    expected["retries"] = json!(7);
    assert_eq!(answer.json()["settings"], expected, "what is absent has its default");
    assert_eq!(answer.json()["comment"], Value::Null);
    let again = put(&router, Some("\"1\""), r#"{"retries":7}"#).await;
    assert_eq!(again.json(), answer.json(), "repeated, it is the same change");
}

#[tokio::test]
async fn only_who_knows_the_version_may_change_it() {
    let router = router();
    let (status, code, _) = put(&router, None, "{}").await.problem();
    assert_eq!((status, code.as_str()), (428, "IF_MATCH_REQUIRED"));
    assert_eq!(put(&router, Some("\"0\""), r#"{"retries":1}"#).await.status, 200);
    let stale = put(&router, Some("\"0\""), r#"{"retries":2}"#).await;
    let (status, code, _) = stale.problem();
    assert_eq!((status, code.as_str()), (412, "VERSION_MISMATCH"));
    assert!(stale.json()["detail"].as_str().unwrap().contains("version 1"), "{stale:?}");
    assert_eq!(put(&router, Some("\"7\""), "{}").await.problem().0, 412);
    for bad in ["\"x\"", "W/\"1\"", "\"1\", \"2\"", "", "-1"] {
        let (status, code, _) = put(&router, Some(bad), "{}").await.problem();
        assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"), "{bad}");
    }
    let any = put(&router, Some("*"), r#"{"retries":9}"#).await.json();
    assert_eq!((&any["version"], &any["settings"]["retries"]), (&json!(2), &json!(9)));
    for (version, status) in [(None, 428), (Some("\"0\""), 412)] {
        assert_eq!(roll_back(&router, version, r#"{"version":1}"#).await.problem().0, status);
    }
}

#[tokio::test]
async fn every_bad_field_is_named() {
    let router = router();
    let long = format!(r#"{{"comment":"{}"}}"#, "x".repeat(501));
    for (body, errors) in [
        (r#"{"retries":1001}"#, vec!["/retries OUT_OF_RANGE"]),
        (r#"{"retries":-1}"#, vec!["/retries OUT_OF_RANGE"]),
        (r#"{"retries":1.5}"#, vec!["/retries OUT_OF_RANGE"]),
        (r#"{"retries":"3"}"#, vec!["/retries WRONG_TYPE"]),
        (r#"{"retries":1,"retries":2}"#, vec!["/retries DUPLICATE_FIELD"]),
        (r#"{"backoff":[]}"#, vec!["/backoff WRONG_TYPE"]),
        (r#"{"backoff":{"strategy":"quadratic"}}"#, vec!["/backoff/strategy UNKNOWN_WORD"]),
        (r#"{"backoff":{"strategy":1}}"#, vec!["/backoff/strategy WRONG_TYPE"]),
        (r#"{"backoff":{"baseSeconds":604801}}"#, vec!["/backoff/baseSeconds OUT_OF_RANGE"]),
        (r#"{"backoff":{"factor":0.5}}"#, vec!["/backoff/factor OUT_OF_RANGE"]),
        (r#"{"backoff":{"capSeconds":-1}}"#, vec!["/backoff/capSeconds OUT_OF_RANGE"]),
        (r#"{"backoff":{"jitter":"some"}}"#, vec!["/backoff/jitter UNKNOWN_WORD"]),
        (r#"{"backoff":{"base":1}}"#, vec!["/backoff/base UNKNOWN_FIELD"]),
        (r#"{"workerConcurrency":0}"#, vec!["/workerConcurrency OUT_OF_RANGE"]),
        (r#"{"workerConcurrency":10001}"#, vec!["/workerConcurrency OUT_OF_RANGE"]),
        (r#"{"workerConcurrency":true}"#, vec!["/workerConcurrency WRONG_TYPE"]),
        (r#"{"lossLimit":0}"#, vec!["/lossLimit OUT_OF_RANGE"]),
        (r#"{"lossLimit":1e400}"#, vec!["/lossLimit OUT_OF_RANGE"]),
        (r#"{"retention":7}"#, vec!["/retention WRONG_TYPE"]),
        (r#"{"retention":{"successSeconds":0}}"#, vec!["/retention/successSeconds OUT_OF_RANGE"]),
        (r#"{"retention":{"failedSeconds":"7d"}}"#, vec!["/retention/failedSeconds WRONG_TYPE"]),
        (
            r#"{"retention":{"cancelledSeconds":1e12}}"#,
            vec!["/retention/cancelledSeconds OUT_OF_RANGE"],
        ),
        (r#"{"retention":{"success":1}}"#, vec!["/retention/success UNKNOWN_FIELD"]),
        (&long, vec!["/comment OUT_OF_RANGE"]),
        (r#"{"comment":"\u0000"}"#, vec!["/comment OUT_OF_RANGE"]),
        (r#"{"comment":7}"#, vec!["/comment WRONG_TYPE"]),
        (r#"{"settings":{}}"#, vec!["/settings UNKNOWN_FIELD"]),
        ("[]", vec![" WRONG_TYPE"]),
        (
            r#"{"retries":"x","lossLimit":0,"colour":1,"retention":{"failedSeconds":0.5}}"#,
            vec![
                "/colour UNKNOWN_FIELD",
                "/retries WRONG_TYPE",
                "/lossLimit OUT_OF_RANGE",
                "/retention/failedSeconds OUT_OF_RANGE",
            ],
        ),
    ] {
        let (status, code, found) = put(&router, Some("*"), body).await.problem();
        assert_eq!(
            (status, code.as_str(), found),
            (422, "INVALID_FIELDS", errors.into_iter().map(str::to_owned).collect()),
            "{body}"
        );
    }
    for (body, status, code) in [("{", 400, "MALFORMED_JSON"), ("", 400, "MALFORMED_JSON")] {
        let (found, named, _) = put(&router, Some("*"), body).await.problem();
        assert_eq!((found, named.as_str()), (status, code), "{body}");
    }
    for (body, error) in [
        ("{}", "/version REQUIRED"),
        (r#"{"version":-1}"#, "/version OUT_OF_RANGE"),
        (r#"{"version":"1"}"#, "/version WRONG_TYPE"),
        (r#"{"version":1,"to":1}"#, "/to UNKNOWN_FIELD"),
    ] {
        assert_eq!(roll_back(&router, Some("*"), body).await.problem().2, [error], "{body}");
    }
    assert_eq!(ask(&router, get("/settings")).await.json()["version"], 0, "nothing has changed");
    let plain = request(Method::PUT, "/settings", &[("if-match", "*")]);
    assert_eq!(ask(&router, plain).await.problem().0, 415);
    assert_eq!(ask(&router, get("/settings?x=1")).await.problem().0, 400);
}

#[tokio::test]
async fn the_history_leads_back() {
    let router = router();
    for retries in 1..=3 {
        let body = json!({"retries": retries, "comment": format!("change {retries}")});
        put(&router, Some("*"), &body.to_string()).await;
    }
    let page = ask(&router, get("/settings/history?limit=2")).await.json();
    let retries = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["settings"]["retries"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(retries(&page), [3, 2]);
    assert_eq!(page["items"][0]["comment"], "change 3");
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = ask(&router, get(&format!("/v1/settings/history?cursor={cursor}"))).await.json();
    assert_eq!((retries(&rest), &rest["nextCursor"]), (vec![1], &Value::Null));
    for query in ["limit=0", "limit=101", "x=1"] {
        let answer = ask(&router, get(&format!("/settings/history?{query}"))).await;
        assert_eq!(answer.problem().1, "INVALID_PARAMETER", "{query}");
    }
    assert_eq!(ask(&router, get("/settings/history?cursor=x")).await.problem().1, "INVALID_CURSOR");

    let back = roll_back(&router, Some("\"3\""), r#"{"version":1}"#).await;
    assert_eq!(back.headers["etag"], "\"4\"");
    let view = back.json();
    assert_eq!((&view["version"], &view["settings"]["retries"]), (&json!(4), &json!(1)));
    assert_eq!(view["comment"], "as in version 1");
    let (status, code, _) = roll_back(&router, Some("*"), r#"{"version":99}"#).await.problem();
    assert_eq!((status, code.as_str()), (404, "VERSION_NOT_FOUND"));
    let first = roll_back(&router, Some("*"), r#"{"version":0,"comment":"anew"}"#).await.json();
    assert_eq!((&first["settings"], &first["comment"]), (&defaults(), &json!("anew")));
}

#[tokio::test]
async fn tasks_that_do_not_say_get_the_new_defaults_at_once() {
    let router = router();
    let submit = async |body: &str| ask(&router, post("/tasks", body.to_owned())).await.json();
    assert_eq!(submit(r#"{"type":"unserved"}"#).await["retries"], 3);
    put(&router, Some("*"), r#"{"retries":8}"#).await;
    assert_eq!(submit(r#"{"type":"unserved"}"#).await["retries"], 8);
    assert_eq!(submit(r#"{"type":"unserved","retries":1}"#).await["retries"], 1);
    let keyed = r#"{"type":"unserved","idempotencyKey":"k"}"#;
    let first = submit(keyed).await;
    put(&router, Some("*"), r#"{"retries":9}"#).await;
    assert_eq!(submit(keyed).await["taskId"], first["taskId"], "it is still the same body");
}

#[tokio::test]
async fn all_who_ask_see_the_same_settings() {
    let engine = engine();
    let (one, other) = (router_over(&engine), router_over(&engine));
    put(&one, Some("\"0\""), r#"{"retries":4}"#).await;
    assert_eq!(ask(&other, get("/settings")).await.json()["settings"]["retries"], 4);
    assert_eq!(put(&other, Some("\"0\""), "{}").await.problem().0, 412);
}
