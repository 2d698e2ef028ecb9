//! An idempotency key is the same over HTTP and by SQL.

use duly_client::Error;
use duly_client::wire::SubmitRequest;

use super::world::World;

/// The same task in two spellings each.
const SAME: [(&str, &str); 5] = [
    (r#"{"type":"email"}"#, "'email', NULL, 'default', 'default', 5, retries => 3"),
    (
        r#"{"type":"email","payload":{"b":[1,"\u00e9",{}],"a":{"x":null,"x":true}}}"#,
        r#"'email', '{ "a" : {"x":true}, "b":[ 1, "é", {} ] }'"#,
    ),
    (
        r#"{"type":"email","delaySeconds":90,"jitterSeconds":0,"timeoutSeconds":2.5,"priority":7}"#,
        "'email', delay => '1.5 minutes', timeout => '2.5 s', priority => 7",
    ),
    (
        r#"{"type":"email","runAt":"2001-02-03T04:05:06.007Z","labels":{"k":"v","a":"é"},"retries":9}"#,
        r#"'email', run_at => '2001-02-03 05:05:06.007+01', labels => '{"a":"é","k":"v"}', retries => 9"#,
    ),
    (
        r#"{"type":"email","queue":"q","backoff":{"strategy":"fixed","baseSeconds":0.5,"factor":1.5}}"#,
        r#"'email', queue => 'q', backoff => '{"factor":1.50,"baseSeconds":5e-1,"strategy":"fixed"}'"#,
    ),
];

fn request(body: &str, key: &str) -> SubmitRequest {
    let request: SubmitRequest = serde_json::from_str(body).unwrap();
    SubmitRequest { idempotency_key: Some(key.to_owned()), ..request }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_and_task_are_the_first_task_both_ways() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    for (number, (body, arguments)) in SAME.into_iter().enumerate() {
        let keyed = |key: &str| format!("{arguments}, idempotency_key => '{key}'");
        let (one, two) = (format!("rest {number}"), format!("sql {number}"));
        let first = world.rest.submit(&request(body, &one)).await.unwrap().task_id;
        assert_eq!(app.submit(&keyed(&one)).await.unwrap(), first, "{arguments}");
        let first = app.submit(&keyed(&two)).await.unwrap();
        let again = world.rest.submit(&request(body, &two)).await.unwrap().task_id;
        assert_eq!(again, first, "{arguments}");
        assert_eq!(app.submit(&keyed(&two)).await.unwrap(), first, "{arguments}");
    }
    assert_eq!(app.count("SELECT count(*) FROM duly.task").await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_task_is_refused_both_ways() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    app.submit("'email', '1', idempotency_key => 'k'").await.unwrap();
    let refused = world.rest.submit(&request(r#"{"type":"email"}"#, "k")).await;
    let Err(Error::Problem { problem, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(problem.code, "IDEMPOTENCY_KEY_REUSED");
    for other in [
        "'email', '1.0'",
        "'sms', '1'",
        "'email', '1', priority => 6",
        "'email', '1', queue => 'q'",
        "'email', '1', retries => 4",
        "'email', '1', delay => '1 ms'",
        "'email', '1', timeout => '1 ms'",
        r#"'email', '1', labels => '{"a":"b"}'"#,
        r#"'email', '1', backoff => '{"factor":3}'"#,
    ] {
        let refused = app.submit(&format!("{other}, idempotency_key => 'k'")).await.unwrap_err();
        let error = refused.as_db_error().unwrap();
        assert_eq!(
            (error.code().code(), error.constraint()),
            ("22023", Some("IDEMPOTENCY_KEY_REUSED")),
            "{other}"
        );
    }
    assert_eq!(app.count("SELECT count(*) FROM duly.task").await, 1);
    app.submit("'email', '2', tenant => 'other', idempotency_key => 'k'").await.unwrap();
    assert_eq!(app.count("SELECT count(*) FROM duly.task").await, 2, "tenants do not share keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_forgotten_after_a_day_or_with_its_task() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let keyed = "'email', '1', idempotency_key => 'k'";
    let first = app.submit(keyed).await.unwrap();
    app.batch_execute("UPDATE duly.idempotency SET created_at = created_at - 86399000")
        .await
        .unwrap();
    assert_eq!(app.submit(keyed).await.unwrap(), first);
    app.batch_execute("UPDATE duly.idempotency SET created_at = created_at - 1000").await.unwrap();
    let second = app.submit(keyed).await.unwrap();
    assert_ne!(second, first);
    let delete = format!("DELETE FROM duly.task WHERE id = '{second}'");
    app.batch_execute(&delete).await.unwrap();
    let third = app.submit("'email', 'true', idempotency_key => 'k'").await.unwrap();
    assert_ne!(third, second);
}
