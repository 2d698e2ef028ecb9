//! The same task over HTTP and by SQL is the same row.

use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;

use super::world::{App, World};

/// What is submitted over HTTP, and the same as arguments. The last one is so far
/// ahead that it needs a day of its own.
const SAME: [(&str, &str); 9] = [
    (r#"{"type":"email"}"#, "'email'"),
    (r#"{"type":"email","payload":null}"#, "type => 'email', payload => 'null'"),
    (
        r#"{"type":"a.b-c_9","payload":{"b":1, "a":[1.0,1e3,12345678901234567890123]}}"#,
        r#"'a.b-c_9', ' {"b":1, "a":[1.0,1e3,12345678901234567890123]} '"#,
    ),
    (
        r#"{"type":"email","queue":"mail","priority":0,"delaySeconds":60.5,"retries":0}"#,
        "'email', queue => 'mail', priority => 0, delay => '60.5 seconds', retries => 0",
    ),
    (
        r#"{"type":"email","priority":9,"timeoutSeconds":0.0011,"retries":1000}"#,
        "'email', priority => 9, timeout => interval '1.1 milliseconds', retries => 1000",
    ),
    (
        r#"{"type":"email","labels":{"b":"2","a":"é\" \\","Z":""}}"#,
        r#"'email', labels => '{"b":"2","a":"é\" \\","Z":""}'"#,
    ),
    (
        r#"{"type":"email","backoff":{"strategy":"linear","baseSeconds":0.25,"jitter":"none"}}"#,
        r#"'email', backoff => '{"strategy":"linear","baseSeconds":0.25,"jitter":"none"}'"#,
    ),
    (
        r#"{"type":"email","backoff":{"factor":1.1,"capSeconds":604800,"jitter":"equal"}}"#,
        r#"'email', backoff => '{"factor":1.1,"capSeconds":604800,"jitter":"equal"}'"#,
    ),
    (
        r#"{"type":"email","backoff":{"factor":2,"baseSeconds":1},"delaySeconds":2592000}"#,
        r#"'email', backoff => '{"factor":2,"baseSeconds":1}', delay => '30 days'"#,
    ),
];

/// A task and its row in the due table, without what names it and when it was submitted.
async fn row(app: &App, id: TaskId) -> String {
    let query = format!(
        "SELECT concat(to_jsonb(t) - '{{id,created_at,run_at}}'::text[], t.run_at - t.created_at,
                       l.tenant, '/', l.queue, '/', l.type, to_jsonb(d) - '{{task,run_at}}'::text[],
                       d.run_at - t.run_at)
         FROM duly.task t JOIN duly.lane l ON l.id = t.lane JOIN duly.due d ON d.task = t.id
         WHERE t.id = '{id}'"
    );
    app.text(&query).await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_columns_are_the_same() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let settings = r#"{"retries":7,"back_off":{"strategy":"fixed","base":{"secs":5,"nanos":500000000},
        "factor":3.0,"cap":{"secs":60,"nanos":0},"jitter":"none"}}"#;
    let set = format!("INSERT INTO duly.settings VALUES (1, 0, NULL, '{settings}')");
    for defaults in ["SELECT", &set] {
        app.batch_execute(defaults).await.unwrap();
        // So that the node knows the settings of now, it is another one.
        let world = world.beside().await;
        for (body, arguments) in SAME {
            let request: SubmitRequest = serde_json::from_str(body).unwrap();
            let by_rest = world.rest.submit(&request).await.unwrap().task_id;
            let by_sql = app.submit(arguments).await.unwrap();
            let (by_rest, by_sql) = (row(&app, by_rest).await, row(&app, by_sql).await);
            assert_eq!(by_sql, by_rest, "{arguments}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instant_means_the_same() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let query = "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '1 day',
                                'YYYY-MM-DD\"T\"HH24:MI:SS.123\"Z\"')";
    let at = app.text(query).await;
    let body = format!(r#"{{"type":"email","runAt":"{at}"}}"#);
    let request: SubmitRequest = serde_json::from_str(&body).unwrap();
    let by_rest = world.rest.submit(&request).await.unwrap().task_id;
    let by_sql = app.submit(&format!("'email', run_at => '{at}'")).await.unwrap();
    assert_eq!(by_sql.first_due(), by_rest.first_due());
    let run_at = format!(
        "SELECT count(DISTINCT run_at) FROM duly.task
        WHERE id IN ('{by_sql}', '{by_rest}')"
    );
    assert_eq!(app.count(&run_at).await, 1);
    let past = app.submit("'email', run_at => '1999-12-31'").await.unwrap();
    let late = format!("SELECT run_at - created_at FROM duly.task WHERE id = '{past}'");
    assert_eq!(app.count(&late).await, 0, "one in the past means now");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_minted_as_nodes_do() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let id = app.submit("'email', delay => '1 hour', jitter => '1 hour'").await.unwrap();
    let bytes = id.as_bytes();
    assert_eq!((bytes[6] >> 4, bytes[8] >> 6), (7, 0b10), "{id}");
    let query = format!("SELECT run_at - created_at FROM duly.task WHERE id = '{id}'");
    let (wait, hour) = (app.count(&query).await, 60 * 60 * 1000);
    assert!((hour..=2 * hour).contains(&wait), "{wait}");
    let query = format!("SELECT run_at FROM duly.task WHERE id = '{id}'");
    assert_eq!(id.first_due().millis(), app.count(&query).await);
}
