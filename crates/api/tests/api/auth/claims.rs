//! S7: every claim is required and checked.

use serde_json::{Value, json};

use super::issuer::{NOW, assert_refused, claims, config, read_with, router_with, token};

/// Checks that a token with this claim is refused; `null` stands for none.
async fn refused(name: &str, value: Value) {
    let router = router_with(&config());
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    assert_refused(&router, &token(&claims), &format!("{name}: {}", claims[name])).await;
}

async fn accepted(name: &str, value: Value) {
    let router = router_with(&config());
    let mut claims = claims();
    claims[name] = value;
    assert_eq!(read_with(&router, &token(&claims)).await.status, 200, "{name}: {}", claims[name]);
}

#[tokio::test]
async fn s07_each_claim_is_required() {
    for name in ["iss", "aud", "sub", "exp", "tenant", "roles"] {
        refused(name, Value::Null).await;
        let router = router_with(&config());
        let mut claims = claims();
        claims[name] = Value::Null;
        assert_refused(&router, &token(&claims), name).await;
    }
}

#[tokio::test]
async fn s07_issuer_and_audience_are_the_configured_ones() {
    for wrong in [json!("other"), json!(""), json!(5), json!(["issuer2"]), json!({})] {
        refused("iss", wrong).await;
    }
    for wrong in [json!("other"), json!(5), json!([5]), json!([]), json!(["other"]), json!({})] {
        refused("aud", wrong).await;
    }
    accepted("aud", json!(["other", "duly"])).await;
}

#[tokio::test]
async fn s07_times_are_numbers_and_lie_right() {
    let text = (NOW + 300).to_string();
    for wrong in [json!(text), json!("never"), json!(-1), json!(1e300), json!(true), json!([])] {
        refused("exp", wrong.clone()).await;
        refused("nbf", wrong).await;
    }
    refused("exp", json!(NOW - 61)).await;
    refused("exp", json!(NOW - 60)).await;
    accepted("exp", json!(NOW - 59)).await;
    accepted("exp", json!(NOW + 300)).await;
    accepted("nbf", json!(NOW + 60)).await;
    refused("nbf", json!(NOW + 61)).await;
    accepted("iat", json!(NOW)).await;
}

#[tokio::test]
async fn s07_subject_tenant_and_roles_are_well_formed() {
    for wrong in [json!(""), json!(5), json!("a\nb"), json!("x".repeat(201))] {
        refused("sub", wrong).await;
    }
    for wrong in [json!(""), json!("Ada"), json!("**"), json!("duly.system"), json!(["default"])] {
        refused("tenant", wrong).await;
    }
    for wrong in [json!([]), json!("admin"), json!(["root"]), json!(["admin", 5]), json!({})] {
        refused("roles", wrong).await;
    }
}

#[tokio::test]
async fn s07_a_token_that_was_valid_expires() {
    // Its signature is not checked twice, but its time is.
    let clock = std::sync::Arc::new(duly_store::clock::ManualClock::new(
        duly_core::time::Timestamp::from_millis(i64::try_from(NOW * 1000).unwrap()),
    ));
    let auth = duly_api::Authenticator::new(&config(), clock.clone()).unwrap();
    let config = duly_api::Config { auth: Some(auth.into()), ..duly_api::Config::default() };
    let router = duly_api::router(crate::support::engine(), config);
    let token = token(&claims());
    assert_eq!(read_with(&router, &token).await.status, 200);
    clock.advance(std::time::Duration::from_secs(359));
    assert_eq!(read_with(&router, &token).await.status, 200);
    clock.advance(std::time::Duration::from_secs(1));
    assert_refused(&router, &token, "expired").await;
}
