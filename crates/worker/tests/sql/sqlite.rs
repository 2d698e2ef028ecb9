//! Statements on SQLite files.

use std::path::Path;
use std::time::Duration;

use duly_testkit::wait::within;
use duly_worker::Handler;
use duly_worker::handlers::Sql;
use rusqlite::Connection;
use serde_json::json;

use crate::support::{TENANT, context, failed, failure, handler, refuses, rows, run, run_text};

/// A file with a table, and a handler for it.
fn world() -> (tempfile::TempDir, Sql) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    let made = Connection::open(&path).unwrap();
    made.execute_batch(
        "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT);
         INSERT INTO note (text) VALUES ('one'), ('two'), ('three');",
    )
    .unwrap();
    let handler = handler(&address(&path));
    (folder, handler)
}

fn address(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn count(folder: &tempfile::TempDir) -> i64 {
    let file = Connection::open(folder.path().join("notes.db")).unwrap();
    file.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn values_become_json_without_loss() {
    let (_folder, handler) = world();
    let statement = "SELECT 9223372036854775807 AS big, 0.1 AS real, 'é\"' AS text, x'00ff' AS bytes, \
                     NULL AS none, 1e999 AS endless";
    let payload = json!({"source": "main", "statement": statement}).to_string();
    let expected = r#"{"rows":[{"big":9223372036854775807,"real":0.1,"text":"é\"","bytes":"AP8=","none":null,"endless":"inf"}],"truncated":false,"affected":null}"#;
    assert_eq!(run_text(&handler, &payload).await.unwrap(), expected);
    let statement = "SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d, ?5 AS e, ?6 AS f";
    let given = json!([i64::MIN, 0.5, "x' OR 1=1 --", true, null, {"k": [1]}]);
    let expected = json!([{"a": i64::MIN, "b": 0.5, "c": "x' OR 1=1 --", "d": 1, "e": null, "f": "{\"k\":[1]}"}]);
    assert_eq!(rows(&handler, statement, given).await, expected);
}

#[tokio::test]
async fn rows_are_bounded_by_number_and_size() {
    let (_folder, handler) = world();
    let statement = "SELECT id FROM note ORDER BY id";
    let payload = json!({"source": "main", "statement": statement, "maxRows": 2});
    let result = run(&handler, &payload).await.unwrap();
    let expected = json!({"rows": [{"id": 1}, {"id": 2}], "truncated": true, "affected": null});
    assert_eq!(result, expected);
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
                   SELECT printf('%1000d', x) AS text FROM n";
    let payload = json!({"source": "main", "statement": endless, "maxRows": 10_000});
    let result = run(&handler, &payload).await.unwrap();
    assert_eq!(result["truncated"], true);
    assert!((400..600).contains(&result["rows"].as_array().unwrap().len()));
    refuses(&handler, "SELECT zeroblob(100000000) AS x", json!([]), "SQL_STATEMENT", "too big")
        .await;
}

#[tokio::test]
async fn a_source_reads_unless_it_may_write() {
    let (folder, handler) = world();
    for statement in [
        "INSERT INTO note (text) VALUES ('x')",
        "INSERT INTO note (text) VALUES ('x') RETURNING id",
        "DELETE FROM note",
        "DROP TABLE note",
        "CREATE TEMP TABLE t (x)",
    ] {
        refuses(&handler, statement, json!([]), "SQL_STATEMENT", "read-only").await;
    }
    assert_eq!(count(&folder), 3);
    let write =
        |statement: &str| json!({"source": "writing", "statement": statement, "maxRows": 1});
    let result = run(&handler, &write("UPDATE note SET text = 'x' WHERE id > 1")).await.unwrap();
    assert_eq!(result, json!({"rows": [], "truncated": false, "affected": 2}));
    let more = "INSERT INTO note (text) VALUES ('a'), ('b') RETURNING id";
    let result = run(&handler, &write(more)).await.unwrap();
    assert_eq!(result, json!({"rows": [{"id": 4}], "truncated": true, "affected": null}));
    assert_eq!(count(&folder), 5, "all rows are written, though not all are returned");
}

#[tokio::test]
async fn a_statement_stays_within_its_file() {
    let (folder, handler) = world();
    let other = folder.path().join("other.db");
    for statement in [
        format!("ATTACH DATABASE '{}' AS other", other.display()),
        format!("VACUUM INTO '{}'", other.display()),
        "PRAGMA query_only = 0".to_owned(),
        "PRAGMA journal_mode = DELETE".to_owned(),
        "BEGIN IMMEDIATE".to_owned(),
        "SELECT load_extension('x')".to_owned(),
    ] {
        for source in ["main", "writing"] {
            let (is_retried, error) =
                failed(run(&handler, &json!({"source": source, "statement": statement})).await);
            assert_eq!((is_retried, error.code.as_str()), (false, "SQL_STATEMENT"), "{statement}");
        }
    }
    assert!(!other.exists());
}

#[tokio::test]
async fn statements_that_cannot_run_say_why() {
    let (folder, handler) = world();
    for (statement, parameters, words) in [
        ("SELEC 1", json!([]), "syntax error"),
        ("SELECT * FROM absent", json!([]), "no such table"),
        ("SELECT 1; SELECT 2", json!([]), "more than one statement"),
        ("SELECT 1; DROP TABLE note", json!([]), "more than one statement"),
        ("SELECT ?1 AS a", json!([]), "1 parameters, and 0 are given"),
        ("SELECT 1 AS a", json!([1]), "0 parameters, and 1 are given"),
        ("SELECT 1 AS a, 2 AS a", json!([]), "two columns are called `a`"),
        ("SELECT ?1 AS a", json!([u64::MAX]), "does not fit in 64 bits"),
    ] {
        refuses(&handler, statement, parameters, "SQL_STATEMENT", words).await;
    }
    refuses(&handler, "SELECT CAST(x'ff' AS TEXT) AS x", json!([]), "SQL_TYPE", "UTF-8").await;
    assert_eq!(count(&folder), 3);
}

#[tokio::test]
async fn payloads_are_checked() {
    let (_folder, handler) = world();
    let many = vec![1; 1001];
    for (payload, words) in [
        (json!({"statement": "SELECT 1"}), "missing field `source`"),
        (json!({"source": "main"}), "missing field `statement`"),
        (json!({"source": "main", "statement": "SELECT 1", "maxRows": 10_001}), "at most 10000"),
        (json!({"source": "main", "statement": "SELECT 1", "parameters": many}), "at most 1000"),
        (json!({"source": "main", "statement": "SELECT 1", "parameters": {}}), "invalid type"),
        (json!({"source": "main", "statement": "SELECT 1", "args": []}), "unknown field `args`"),
    ] {
        let (is_retried, error) = failed(run(&handler, &payload).await);
        assert_eq!((is_retried, error.code.as_str()), (false, "INVALID_PAYLOAD"), "{payload}");
        assert!(error.message.contains(words), "{payload}: {}", error.message);
    }
}

#[tokio::test]
async fn s1_another_tenants_source_is_like_one_that_does_not_exist() {
    let (_folder, handler) = world();
    let ask = async |tenant: &str, source: &str| {
        let payload = json!({"source": source, "statement": "SELECT 1 AS x"});
        let result = handler.run(context(tenant, &payload)).await;
        let (is_retried, error) = failed(result.map(|_| json!(null)));
        assert_eq!((is_retried, error.code.as_str()), (false, "SQL_SOURCE"));
        error.message.replace(source, "…")
    };
    let absent = ask(TENANT, "absent").await;
    assert_eq!(ask("other", "main").await, absent);
    assert_eq!(ask("default", "main").await, absent);
    assert_eq!(ask(TENANT, "nobody").await, absent);
}

#[tokio::test]
async fn a_statement_without_an_end_is_cancelled_with_its_attempt() {
    let (folder, handler) = world();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
                   INSERT INTO note SELECT x + 10, 'x' FROM n WHERE x < 0";
    let payload = json!({"source": "writing", "statement": endless});
    let attempt = handler.run(context(TENANT, &payload));
    assert!(tokio::time::timeout(Duration::from_millis(200), attempt).await.is_err());
    // It held the lock of the file. A statement of another attempt gets it, once it has ended.
    let next = json!({"source": "writing", "statement": "DELETE FROM note WHERE id = 1"});
    let result = within("the lock is free", run(&handler, &next)).await.unwrap();
    assert_eq!(result.unwrap()["affected"], 1);
    assert_eq!(count(&folder), 2);
}

#[tokio::test]
async fn s10_a_file_that_cannot_be_opened_is_tried_again_and_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("canary.db");
    let broken = folder.path().join("broken-canary.db");
    std::fs::write(
        &broken,
        "no database, but long enough to be looked at as if it were one".repeat(20),
    )
    .unwrap();
    for path in [&missing, &broken] {
        let (is_retried, error) =
            failure(&handler(&address(path)), "SELECT 1 AS x", json!([])).await;
        assert_eq!((is_retried, error.code.as_str()), (true, "SQL_UNAVAILABLE"), "{path:?}");
        assert!(!error.message.contains("canary"), "{}", error.message);
    }
    assert!(!missing.exists(), "no file is made");
}
