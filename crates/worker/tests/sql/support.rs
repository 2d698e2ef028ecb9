//! The handler, and what it needs.

use duly_core::name::TenantName;
use duly_core::task::Failure;
use duly_testkit::attempt;
use duly_worker::handlers::Sql;
use duly_worker::sql::{Source, Sources};
use duly_worker::{Context, Handler, HandlerError};
use serde_json::{Value, json};

/// The tenant that may use the sources.
pub(crate) const TENANT: &str = "acme";

/// A handler with the source `main`, which only reads, and `writing`, which does not.
pub(crate) fn handler(address: &str) -> Sql {
    let tenant = || vec![TenantName::new(TENANT).unwrap()];
    let source = |may_write| Source::new(address, tenant(), may_write).unwrap();
    let nobody = Source::new(address, Vec::new(), false).unwrap();
    Sql::new(Sources::new(
        [("main", source(false)), ("writing", source(true)), ("nobody", nobody)]
            .map(|(name, source)| (name.to_owned(), source))
            .into(),
    ))
}

/// An attempt of a tenant.
pub(crate) fn context(tenant: &str, payload: &Value) -> Context {
    attempt::context("sql", tenant, &payload.to_string())
}

/// The result of an attempt.
pub(crate) async fn run(handler: &Sql, payload: &Value) -> Result<Value, HandlerError> {
    let text = run_text(handler, &payload.to_string()).await?;
    Ok(serde_json::from_str(&text).unwrap())
}

/// The result of an attempt as it is spelled.
pub(crate) async fn run_text(handler: &Sql, payload: &str) -> Result<String, HandlerError> {
    let output = handler.run(attempt::context("sql", TENANT, payload)).await?;
    Ok(output.into_text().unwrap().to_string())
}

/// The rows of a statement on the source that only reads.
pub(crate) async fn rows(handler: &Sql, statement: &str, parameters: Value) -> Value {
    let payload = json!({"source": "main", "statement": statement, "parameters": parameters});
    let result = run(handler, &payload).await;
    result.unwrap_or_else(|error| panic!("{statement}: {error}"))["rows"].take()
}

/// How a statement on the source that only reads fails: whether it is retried, and its code and message.
pub(crate) async fn failure(handler: &Sql, statement: &str, parameters: Value) -> (bool, Failure) {
    let payload = json!({"source": "main", "statement": statement, "parameters": parameters});
    failed(run(handler, &payload).await)
}

pub(crate) fn failed(result: Result<Value, HandlerError>) -> (bool, Failure) {
    match result.unwrap_err() {
        HandlerError::Retry(failure) => (true, failure),
        HandlerError::Fail(failure) => (false, failure),
        other => panic!("{other:?}"),
    }
}

/// Checks that a statement fails for good with this code and these words.
pub(crate) async fn refuses(
    handler: &Sql,
    statement: &str,
    parameters: Value,
    code: &str,
    words: &str,
) {
    let (is_retried, error) = failure(handler, statement, parameters).await;
    assert_eq!((is_retried, error.code.as_str()), (false, code), "{statement}: {error:?}");
    assert!(error.message.contains(words), "{statement}: {}", error.message);
}
