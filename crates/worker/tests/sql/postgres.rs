//! Statements on PostgreSQL.

use std::time::Duration;

use duly_store::postgres::scratch;
use duly_testkit::wait::{PATIENCE, eventually};
use duly_worker::Handler;
use duly_worker::handlers::Sql;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::support::{TENANT, context, failed, failure, handler, refuses, rows, run, run_text};

/// A database of one test, and a handler for it. The database goes with the world.
struct World {
    handler: Sql,
    client: Client,
    _driver: JoinSet<()>,
}

impl World {
    /// `None` where no server is configured.
    async fn new(test: &str) -> Option<Self> {
        let server = scratch::server()?;
        let name = format!("duly_sql_{test}");
        let (admin, _driver) = connect(&server).await;
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        admin.batch_execute(&drop).await.unwrap();
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        let address = format!("{base}/{name}");
        let (client, driver) = connect(&address).await;
        let made = "CREATE TABLE note (id int PRIMARY KEY, text text);
                    INSERT INTO note VALUES (1, 'one'), (2, 'two'), (3, 'three')";
        client.batch_execute(made).await.unwrap();
        Some(Self { handler: handler(&address), client, _driver: driver })
    }

    async fn count(&self) -> i64 {
        self.client.query_one("SELECT count(*) FROM note", &[]).await.unwrap().get(0)
    }

    /// Whether a statement that holds this word runs.
    async fn runs(&self, word: &str) -> bool {
        let look = "SELECT count(*) > 0 FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'duly sql'
                      AND state = 'active' AND query LIKE '%' || $1 || '%'";
        self.client.query_one(look, &[&word]).await.unwrap().get(0)
    }
}

async fn connect(address: &str) -> (Client, JoinSet<()>) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (client, driver)
}

#[tokio::test]
async fn values_become_json_without_loss() {
    let Some(world) = World::new("values").await else { return };
    world.client.batch_execute("CREATE TYPE mood AS ENUM ('fine')").await.unwrap();
    for (expression, json) in [
        ("9223372036854775807::int8", "9223372036854775807"),
        ("(-7)::int2", "-7"),
        (
            "123456789012345678901234567890.000001::numeric",
            r#""123456789012345678901234567890.000001""#,
        ),
        ("'-0.00001000'::numeric", r#""-0.00001000""#),
        ("10000::numeric", r#""10000""#),
        ("'NaN'::numeric", r#""NaN""#),
        ("0.1::float8", "0.1"),
        ("0.1::float4", "0.1"),
        ("'-Infinity'::float8", r#""-Infinity""#),
        ("true", "true"),
        ("NULL::text", "null"),
        (r#"E'a"\\é\n'"#, r#""a\"\\é\n""#),
        ("'x'::varchar(9)", r#""x""#),
        ("'x'::char(3)", r#""x  ""#),
        ("'fine'::mood", r#""fine""#),
        ("'\\x00ff'::bytea", r#""AP8=""#),
        ("'{\"b\": 1, \"a\": 1.0}'::json", r#"{"b": 1, "a": 1.0}"#),
        ("'{\"a\": 10000000000000000000001}'::jsonb", r#"{"a": 10000000000000000000001}"#),
        (
            "'5f1cbd9e-8a0f-4b6e-9a58-0d0f4f6b2c11'::uuid",
            r#""5f1cbd9e-8a0f-4b6e-9a58-0d0f4f6b2c11""#,
        ),
        ("'2030-01-31 10:00:00.000001+02'::timestamptz", r#""2030-01-31T08:00:00.000001Z""#),
        ("'1969-12-31 23:59:59Z'::timestamptz", r#""1969-12-31T23:59:59Z""#),
        ("'infinity'::timestamptz", r#""infinity""#),
        ("'2030-01-31 10:00:00'::timestamp", r#""2030-01-31T10:00:00""#),
        ("'1999-12-31'::date", r#""1999-12-31""#),
        ("'23:59:59.5'::time", r#""23:59:59.5""#),
        ("ARRAY[1, NULL, 3]", "[1,null,3]"),
        ("ARRAY['a', 'b\"']", r#"["a","b\""]"#),
    ] {
        let payload = json!({"source": "main", "statement": format!("SELECT {expression} AS x")});
        let text = run_text(&world.handler, &payload.to_string()).await;
        let text = text.unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(
            text,
            format!(r#"{{"rows":[{{"x":{json}}}],"truncated":false,"affected":null}}"#)
        );
    }
    for (expression, words) in [
        ("'1 day'::interval", "interval"),
        ("point(1, 2)", "point"),
        ("'127.0.0.1'::inet", "inet"),
        ("ARRAY[[1, 2], [3, 4]]", "dimension"),
        ("'10000-01-01'::date", "9999"),
    ] {
        let statement = format!("SELECT {expression} AS x");
        refuses(&world.handler, &statement, json!([]), "SQL_TYPE", words).await;
    }
}

#[tokio::test]
async fn parameters_are_read_as_the_statement_wants_them() {
    let Some(world) = World::new("parameters").await else { return };
    for (expression, given, expected) in [
        ("$1::int8", json!(i64::MAX), json!(i64::MAX)),
        ("$1::text", json!("x' OR 1=1 --"), json!("x' OR 1=1 --")),
        ("$1::text", json!(null), json!(null)),
        ("$1::text", json!(7), json!("7")),
        ("$1::bool", json!(true), json!(true)),
        (
            "$1::uuid",
            json!("5f1cbd9e-8a0f-4b6e-9a58-0d0f4f6b2c11"),
            json!("5f1cbd9e-8a0f-4b6e-9a58-0d0f4f6b2c11"),
        ),
        ("$1::timestamptz", json!("2030-01-31T08:00:00Z"), json!("2030-01-31T08:00:00Z")),
        ("$1::jsonb", json!({"a": ["x"]}), json!({"a": ["x"]})),
        ("$1::jsonb", json!("text"), json!("text")),
        ("$1::bytea", json!("AP8="), json!("AP8=")),
        ("$1::text[]", json!(["a", null, "b\",{}"]), json!(["a", null, "b\",{}"])),
    ] {
        let statement = format!("SELECT {expression} AS x");
        let found = rows(&world.handler, &statement, json!([given])).await;
        assert_eq!(found, json!([{"x": expected}]), "{expression}");
    }
    let found =
        rows(&world.handler, "SELECT id FROM note WHERE id = ANY($1)", json!([[1, 3]])).await;
    assert_eq!(found, json!([{"id": 1}, {"id": 3}]));
    let payload = r#"{"source":"main","statement":"SELECT $1::numeric AS x","parameters":[0.10000000000000000000001]}"#;
    let text = run_text(&world.handler, payload).await.unwrap();
    assert!(text.contains(r#"[{"x":"0.10000000000000000000001"}]"#), "{text}");
    for (expression, given, words) in [
        ("$1::int4", json!("x"), "invalid input syntax"),
        ("$1::int4", json!(3_000_000_000_u32), "out of range"),
    ] {
        let statement = format!("SELECT {expression} AS x");
        refuses(&world.handler, &statement, json!([given]), "SQL_STATEMENT", words).await;
    }
    refuses(&world.handler, "SELECT $1::bytea AS x", json!(["?"]), "SQL_TYPE", "base64").await;
}

#[tokio::test]
async fn a_source_reads_unless_it_may_write() {
    let Some(world) = World::new("writes").await else { return };
    for statement in [
        "INSERT INTO note VALUES (4, 'x')",
        "WITH gone AS (DELETE FROM note RETURNING id) SELECT id FROM gone",
        "DROP TABLE note",
        "TRUNCATE note",
        "DO $$BEGIN SET TRANSACTION READ WRITE; DELETE FROM note; END$$",
        "DO $$BEGIN PERFORM set_config('transaction_read_only', 'off', true); DELETE FROM note; END$$",
        "DO $$BEGIN COMMIT; DELETE FROM note; END$$",
        "SELECT setval('s', 1) AS x FROM (SELECT set_config('transaction_read_only', 'off', true)) y",
    ] {
        let (is_retried, error) = failure(&world.handler, statement, json!([])).await;
        assert_eq!((is_retried, error.code.as_str()), (false, "SQL_STATEMENT"), "{statement}");
    }
    // They end the transaction, and nothing follows.
    for statement in ["COMMIT", "ROLLBACK AND CHAIN"] {
        drop(run(&world.handler, &json!({"source": "main", "statement": statement})).await);
    }
    assert_eq!(world.count().await, 3);
    let write =
        |statement: &str| json!({"source": "writing", "statement": statement, "maxRows": 1});
    let update = write("UPDATE note SET text = 'x' WHERE id > 1");
    let result = run(&world.handler, &update).await.unwrap();
    assert_eq!(result, json!({"rows": [], "truncated": false, "affected": 2}));
    let insert =
        write("INSERT INTO note SELECT n, 'x' FROM generate_series(10, 500) n RETURNING id");
    let result = run(&world.handler, &insert).await.unwrap();
    assert_eq!(result, json!({"rows": [{"id": 10}], "truncated": true, "affected": null}));
    assert_eq!(world.count().await, 494, "all rows are written, though not all are returned");
}

#[tokio::test]
async fn rows_are_bounded_by_number_and_size() {
    let Some(world) = World::new("rows").await else { return };
    let ask = async |statement: &str, max: usize| -> Value {
        let payload = json!({"source": "main", "statement": statement, "maxRows": max});
        run(&world.handler, &payload).await.unwrap()
    };
    for (max, kept, truncated) in
        [(0, 0, true), (100, 100, true), (250, 250, false), (251, 250, false)]
    {
        let result = ask("SELECT n FROM generate_series(1, 250) n", max).await;
        assert_eq!(result["rows"].as_array().unwrap().len(), kept, "{max}");
        assert_eq!(result["truncated"], truncated, "{max}");
    }
    // Reading all of it would take hours.
    let endless = "SELECT generate_series(1, 10000000000) AS n, repeat('x', 1000) AS text";
    let result = ask(endless, 10_000).await;
    assert!((400..600).contains(&result["rows"].as_array().unwrap().len()));
    assert_eq!(result["truncated"], true);
}

#[tokio::test]
async fn statements_that_cannot_run_say_why() {
    let Some(world) = World::new("refusals").await else { return };
    for (statement, parameters, words) in [
        ("SELEC 1", json!([]), "SQLSTATE 42601"),
        ("SELECT * FROM nothing", json!([]), "does not exist"),
        ("SELECT 1 AS x; SELECT 2 AS x", json!([]), "more than one statement"),
        ("SELECT $1::int AS x", json!([]), "1 parameters, and 0 are given"),
        ("SELECT 1 AS a, 2 AS a", json!([]), "two columns are called `a`"),
        ("SELECT 1 / 0 AS x", json!([]), "division by zero"),
    ] {
        refuses(&world.handler, statement, parameters, "SQL_STATEMENT", words).await;
    }
    let twice = json!({"source": "writing", "statement": "INSERT INTO note VALUES (1, 'x')"});
    let (is_retried, error) = failed(run(&world.handler, &twice).await);
    assert_eq!((is_retried, error.code.as_str()), (false, "SQL_STATEMENT"));
    assert!(error.message.contains("23505"), "{}", error.message);
}

#[tokio::test]
async fn a_statement_without_an_end_is_cancelled_with_its_attempt() {
    let Some(world) = World::new("cancelled").await else { return };
    let payload = json!({"source": "main", "statement": "SELECT pg_sleep(3600)::text AS slow_one"});
    let attempt = world.handler.run(context(TENANT, &payload));
    let started = async {
        let seen = || async { world.runs("slow_one").await.then_some(()) };
        eventually("the statement runs", PATIENCE, seen).await.unwrap();
    };
    tokio::select! {
        result = attempt => panic!("{result:?}"),
        () = started => {}
    }
    let gone = || async { (!world.runs("slow_one").await).then_some(()) };
    eventually("the statement is cancelled", PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn conflicts_and_absent_servers_are_tried_again() {
    let absent = handler("postgres://canary:canary@127.0.0.1:1/shop");
    let (is_retried, error) = failure(&absent, "SELECT 1 AS x", json!([])).await;
    assert_eq!((is_retried, error.code.as_str()), (true, "SQL_UNAVAILABLE"));
    assert!(!error.message.contains("canary"), "{}", error.message);

    let Some(world) = World::new("conflicts").await else { return };
    world.client.batch_execute("BEGIN; LOCK TABLE note").await.unwrap();
    let payload = json!({"source": "main", "statement": "SELECT id FROM note"});
    let waiting = world.handler.run(context(TENANT, &payload));
    assert!(tokio::time::timeout(Duration::from_millis(200), waiting).await.is_err());
    world.client.batch_execute("COMMIT").await.unwrap();
    let ended = "SELECT pg_terminate_backend(pg_backend_pid()) AS x";
    let (is_retried, error) = failure(&world.handler, ended, json!([])).await;
    assert_eq!((is_retried, error.code.as_str()), (true, "SQL_UNAVAILABLE"), "{error:?}");
}
