//! Filters in SQL: fixed text whose parameters are the terms, so that a statement is compiled once
//! and nothing that a caller wrote is ever part of it.

use std::collections::BTreeMap;

use duly_core::error_group::ErrorGroup;
use duly_core::filter::{Filter, says};
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::state::Status;
use duly_core::task::Failure;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{CachedStatement, Connection, Statement, ToSql, named_params};

use super::error::Result;
use super::row::encode_status;

/// A verdict: the row is another tenant's.
pub(super) const FOREIGN: i64 = 0;
/// A verdict: the row is the tenant's own and matches.
pub(super) const FITS: i64 = 2;

/// The verdict on a row that stands beside its `lane`: 0 if it is another tenant's, 1 if a term
/// does not hold, 2 if all do. A `CASE` stops at the first that does not, so what is dear to look
/// at comes last. Takes where the row has its state, group, session, labels, error
/// and workflow.
macro_rules! verdict {
    ($status:literal, $group:literal, $session:literal, $labels:literal, $error:literal,
     $workflow:literal) => {
        concat!(
            "CASE WHEN lane.tenant IS NOT :tenant THEN 0
               WHEN :queue IS NOT NULL AND lane.queue <> :queue THEN 1
               WHEN :type IS NOT NULL AND lane.type <> :type THEN 1
               WHEN (:statuses >> ",
            $status,
            ") & 1 = 0 THEN 1
               WHEN :workflow IS NOT NULL AND ",
            $workflow,
            " IS NOT :workflow THEN 1
               WHEN :group IS NOT NULL AND ",
            $group,
            " IS NOT :group THEN 1
               WHEN :worker IS NOT NULL
                 AND (SELECT name FROM session WHERE session.id = ",
            $session,
            ") IS NOT :worker THEN 1
               WHEN :labels IS NOT NULL AND NOT labels_have(",
            $labels,
            ", :labels) THEN 1
               WHEN :error IS NOT NULL AND NOT error_says(",
            $error,
            ", :error) THEN 1
               ELSE 2 END"
        )
    };
}

/// The verdict on a row of `task`.
pub(super) const TASK_VERDICT: &str = verdict!(
    "task.status",
    "group_of(task.error)",
    "task.session",
    "task.labels",
    "task.error",
    "task.workflow"
);

/// The verdict on a row of `dlq`. Its task, in another table, is looked at only for terms that
/// need it.
pub(super) const DEAD_VERDICT: &str = verdict!(
    "4",
    "dlq.error_group",
    "(SELECT task.session FROM task WHERE task.id = dlq.task)",
    "(SELECT task.labels FROM task WHERE task.id = dlq.task)",
    "(SELECT task.error FROM task WHERE task.id = dlq.task)",
    "(SELECT task.workflow FROM task WHERE task.id = dlq.task)"
);

/// Gives a statement the terms that its verdict asks for.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    tenant: &TenantName,
    filter: &Filter,
) -> Result<()> {
    let Filter { statuses, queue, task_type, labels, error, group, worker, workflow, .. } = filter;
    let mask = |statuses: &mut dyn Iterator<Item = Status>| {
        statuses.fold(0_i64, |mask, status| mask | 1 << encode_status(status))
    };
    let statuses = match statuses.is_empty() {
        true => mask(&mut Status::ALL.into_iter()),
        false => mask(&mut statuses.iter().copied()),
    };
    let labels = (!labels.is_empty())
        .then(|| serde_json::to_string(labels).expect("strings can always be written as JSON"));
    put(
        statement,
        named_params! {
            ":tenant": tenant.as_str(),
            ":queue": queue.as_ref().map(|queue| queue.as_str()),
            ":type": task_type.as_ref().map(|name| name.as_str()),
            ":statuses": statuses,
            ":group": group.map(ErrorGroup::to_bits),
            ":worker": worker,
            ":workflow": workflow.as_ref().map(|id| *id.as_bytes()),
            ":labels": labels,
            ":error": error,
        },
    )
}

/// Gives a statement some of its parameters.
pub(super) fn put(statement: &mut Statement<'_>, values: &[(&str, &dyn ToSql)]) -> Result<()> {
    for (name, value) in values {
        let index = statement.parameter_index(name)?;
        let index = index.ok_or_else(|| rusqlite::Error::InvalidParameterName((*name).into()))?;
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Verdicts on tasks that another query found, one by one.
pub(super) struct Verdicts<'a>(CachedStatement<'a>);

impl<'a> Verdicts<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        tenant: &TenantName,
        filter: &Filter,
    ) -> Result<Self> {
        let mut statement = connection.prepare_cached(&verdict_on_one())?;
        bind(&mut statement, tenant, filter)?;
        Ok(Self(statement))
    }

    /// The verdict on a task. A missing task passes no filter.
    pub(super) fn on(&mut self, task: TaskId) -> Result<i64> {
        put(&mut self.0, named_params! { ":id": task.as_bytes() })?;
        let mut rows = self.0.raw_query();
        Ok(rows.next()?.map_or(Ok(FOREIGN), |row| row.get(0))?)
    }
}

pub(super) fn verdict_on_one() -> String {
    format!(
        "/* task.verdict */ SELECT {TASK_VERDICT}
         FROM task LEFT JOIN lane ON lane.id = task.lane WHERE task.id = :id"
    )
}

/// Whether the tenant ever had a task of the queue and type asked for. Where it had none there is
/// nothing to look for, however many tasks others have.
pub(super) fn has_lane(
    connection: &Connection,
    tenant: &TenantName,
    filter: &Filter,
) -> Result<bool> {
    let mut statement = connection.prepare_cached(
        "/* lane.any */ SELECT EXISTS (SELECT 1 FROM lane WHERE tenant = :tenant
           AND (:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type))",
    )?;
    let found = statement.query_row(
        named_params! {
            ":tenant": tenant.as_str(),
            ":queue": filter.queue.as_ref().map(|queue| queue.as_str()),
            ":type": filter.task_type.as_ref().map(|name| name.as_str()),
        },
        |row| row.get(0),
    )?;
    Ok(found)
}

/// Tells a connection what verdicts need to know that SQL cannot say. A text that cannot be read
/// does not match: one damaged row must not hide the others.
pub(super) fn register_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("group_of", 1, flags, |context| {
        Ok(failure(context).map(|failure| ErrorGroup::of(&failure).to_bits()))
    })?;
    connection.create_scalar_function("error_says", 2, flags, |context| {
        let text = context.get_raw(1).as_str()?;
        Ok(failure(context).is_some_and(|failure| says(&failure, text)))
    })?;
    connection.create_scalar_function("labels_have", 2, flags, |context| {
        let Some(text) = context.get_raw(0).as_str_or_null()? else { return Ok(false) };
        let wanted = context.get_or_create_aux(1, |value| {
            let text = value.as_str().map_err(|error| error.to_string())?;
            serde_json::from_str(text).map_err(|error| error.to_string())
        })?;
        Ok(labels_have(text, &wanted))
    })
}

/// Whether labels, as JSON, have all of these.
fn labels_have(text: &str, wanted: &BTreeMap<String, String>) -> bool {
    // This is asked of every row that a page comes upon, and few labels are spelled with escapes:
    // others need no copies.
    if let Ok(labels) = serde_json::from_str::<BTreeMap<&str, &str>>(text) {
        return wanted.iter().all(|(key, value)| labels.get(&**key) == Some(&&**value));
    }
    let labels = serde_json::from_str::<BTreeMap<String, String>>(text).unwrap_or_default();
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn failure(context: &Context<'_>) -> Option<Failure> {
    let text = context.get_raw(0).as_str_or_null().ok()??;
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_dead_letters_is_written_as_tasks_have_it() {
        assert_eq!(encode_status(Status::Failed), 4);
    }
}
