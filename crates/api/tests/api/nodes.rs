//! `/nodes`

use duly_core::node::Role;
use duly_core::ports::store::JoinNode;
use serde_json::json;

use crate::support::{ask, engine, get, router_over};

#[tokio::test]
async fn nodes_are_listed_with_the_one_that_leads() {
    let engine = engine();
    let router = router_over(&engine);
    assert_eq!(ask(&router, get("/nodes")).await.json()["items"], json!([]), "no node has joined");
    let node = JoinNode {
        name: "one".to_owned(),
        roles: vec![Role::Api, Role::Scheduler],
        version: "1.2.3".to_owned(),
        address: Some("127.0.0.1:8080".to_owned()),
    };
    engine.introduce(node).await.unwrap();
    let answer = ask(&router, get("/v1/nodes")).await;
    assert_eq!(answer.status, 200);
    let list = answer.json();
    let one = &list["items"][0];
    assert_eq!(one["name"], "one");
    assert_eq!(one["roles"], json!(["api", "scheduler"]));
    assert_eq!((&one["version"], &one["address"]), (&json!("1.2.3"), &json!("127.0.0.1:8080")));
    assert!(one["beatAgeSeconds"].as_f64().unwrap() < 60.0, "{one}");
    assert_eq!((&one["isLeader"], &one["state"]), (&json!(true), &json!("ALIVE")));
    assert_eq!(list["leader"], json!({"nodeId": one["nodeId"], "term": 1}));
    let (status, code, _) = ask(&router, get("/nodes?all=1")).await.problem();
    assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"));
}
