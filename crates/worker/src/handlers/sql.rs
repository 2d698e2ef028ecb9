//! Runs one statement on a database that the operator has named.

mod about;

use async_trait::async_trait;
use duly_core::limits::{SQL_DEFAULT_ROWS, SQL_PARAMETERS, SQL_ROWS};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(super) use self::about::REFERENCE;
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::sql::{Answer, Parameter, Query, Sources, SqlError};

/// The type `sql`; its payload is `{source, statement, parameters?, maxRows?}`.
#[derive(Clone, Debug)]
pub struct Sql {
    sources: Sources,
}

impl Sql {
    /// A handler for these databases.
    pub fn new(sources: Sources) -> Self {
        Self { sources }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Payload {
    source: String,
    statement: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
    max_rows: Option<usize>,
}

/// The result of a task.
#[derive(Serialize)]
struct Rows {
    rows: Box<RawValue>,
    truncated: bool,
    affected: Option<u64>,
}

#[async_trait]
impl Handler for Sql {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let Payload { source, statement, parameters, max_rows } = context.payload()?;
        let max_rows = max_rows.unwrap_or(SQL_DEFAULT_ROWS);
        if max_rows > SQL_ROWS {
            let why = format!("maxRows must be at most {SQL_ROWS}");
            return Err(HandlerError::invalid_payload(why));
        }
        if parameters.len() > SQL_PARAMETERS {
            let why = format!("parameters may have at most {SQL_PARAMETERS} items");
            return Err(HandlerError::invalid_payload(why));
        }
        let limit = context.lease().time_limit();
        let tenant = &context.lease().lane.tenant;
        let query = Query { statement, parameters, max_rows, limit };
        let running = self.sources.run(&source, tenant, query);
        let answer = tokio::select! {
            answer = running => answer.map_err(handler_error)?,
            // What the statement gives no longer counts. Dropping it cancels it.
            () = context.cancelled() => return Err(HandlerError::Release),
        };
        let Answer { rows, is_truncated, affected } = answer;
        let unreadable = |why: serde_json::Error| HandlerError::fail("SQL_TYPE", why.to_string());
        let rows = RawValue::from_string(rows).map_err(unreadable)?;
        Output::json(&Rows { rows, truncated: is_truncated, affected })
    }
}

fn handler_error(error: SqlError) -> HandlerError {
    let why = error.to_string();
    match error {
        SqlError::NoSource(_) => HandlerError::fail("SQL_SOURCE", why),
        SqlError::Statement(_) => HandlerError::fail("SQL_STATEMENT", why),
        SqlError::Unavailable(_) => HandlerError::retry("SQL_UNAVAILABLE", why),
        SqlError::Type(_) => HandlerError::fail("SQL_TYPE", why),
    }
}
