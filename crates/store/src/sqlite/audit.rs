//! The audit log in the file: written by the writer, with the change, and read beside it.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::audit::{AuditEntry, Author};
use duly_core::id::{ScheduleId, SessionId, WorkflowId};
use duly_core::limits::AUDIT_FLOOR;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{self, AuditLog, ListAudit, Store};
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::error::{Fault, Result};
use super::verb::{Scope, Verb};
use super::{SqliteStore, keys, links, queues, reader, schedules, settings, tenants};
use crate::audited::{Change, Object, Subject, View};

#[async_trait]
impl AuditLog for SqliteStore {
    fn on_behalf_of(&self, author: Author) -> Arc<dyn Store> {
        Arc::new(Self { author: Some(author), ..self.clone() })
    }

    async fn audit_log(&self, page: ListAudit) -> store::Result<Vec<AuditEntry>> {
        self.readers.query(move |connection| list(connection, &page)).await
    }

    async fn forget_audit(&self, before: Timestamp, limit: u32) -> store::Result<u32> {
        self.ask(ForgetAudit { before, limit }).await
    }
}

/// Objects as they were before an order of a user.
pub(super) struct Watched(Vec<(Subject, Option<View>)>);

impl Watched {
    pub(super) fn begin(scope: &Scope<'_>, subjects: Vec<Subject>) -> Result<Self> {
        let look = |subject: Subject| view(scope, &subject.object).map(|view| (subject, view));
        Ok(Self(subjects.into_iter().map(look).collect::<Result<_>>()?))
    }

    /// Writes an entry for each of them that the order has changed.
    pub(super) fn write_changes(self, scope: &mut Scope<'_>, author: &Author) -> Result<()> {
        for (subject, before) in self.0 {
            let after = view(scope, &subject.object)?;
            let Some(change) = subject.change(before, after, scope.counted) else { continue };
            #[cfg(feature = "planted-bugs")]
            if scope.bug == Some(crate::planted::PlantedBug::AuditOutsideCommit) {
                scope.late_changes.push((author.clone(), change));
                continue;
            }
            write(scope.connection, scope.now, author, &change)?;
        }
        Ok(())
    }
}

pub(super) fn write(
    connection: &Connection,
    now: Timestamp,
    author: &Author,
    change: &Change,
) -> Result<()> {
    connection
        .prepare_cached(
            "/* audit.write */ INSERT INTO audit
                    (at, actor, tenant, action, target, before, after, request_id)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            now.millis(),
            &*author.actor,
            change.tenant.as_ref().map(TenantName::as_str),
            change.action,
            change.target,
            change.before.as_deref(),
            change.after.as_deref(),
            author.request_id.as_deref(),
        ])?;
    Ok(())
}

/// An object as it is now.
fn view(scope: &Scope<'_>, object: &Object) -> Result<Option<View>> {
    let connection = scope.connection;
    let (seen, damaged) = match object {
        Object::Settings => {
            let settings = settings::newest(connection);
            (settings.map(|it| Some(View::settings(&it))), View::damaged(None, "settings"))
        }
        Object::Queue(tenant, queue) => {
            let pause = queues::paused(connection, tenant, queue);
            let seen = pause.map(|pause| Some(View::queue(tenant, queue, pause.as_ref())));
            (seen, View::damaged(Some(tenant), queue))
        }
        Object::Schedule(tenant, name) => {
            let schedule = schedules::find(connection, tenant, name);
            let seen = schedule.map(|it| it.as_ref().map(View::schedule));
            (seen, View::damaged(Some(tenant), name))
        }
        Object::Slot(schedule, slot) => {
            (view_slot(connection, *schedule, *slot), View::damaged(None, schedule))
        }
        Object::Task(tenant, id) => {
            let task = reader::get(connection, tenant, *id);
            (task.map(|it| it.as_ref().map(View::task)), View::damaged(Some(tenant), id))
        }
        Object::Workflow(tenant, id) => {
            (view_workflow(connection, tenant, *id), View::damaged(Some(tenant), id))
        }
        Object::Session(id) => (Ok(view_session(scope, *id)), View::damaged(None, id)),
        Object::Key(id) => {
            let key = keys::by_id(connection, *id);
            (key.map(|it| it.as_ref().map(View::key)), View::damaged(None, id))
        }
        Object::Tenant(name) => {
            let record = tenants::find(connection, name);
            (record.map(|it| it.as_ref().map(View::tenant)), View::damaged(None, name))
        }
    };
    match seen {
        // Damage must not keep a user from replacing what is damaged.
        Err(fault) if fault.is_bad_row() => Ok(Some(damaged)),
        seen => seen,
    }
}

fn view_slot(
    connection: &Connection,
    schedule: ScheduleId,
    slot: Timestamp,
) -> Result<Option<View>> {
    let mut statement = connection.prepare_cached(
        "/* audit.slot */ SELECT slot.kind, slot.run, slot.reason, schedule.tenant, schedule.name
         FROM slot JOIN schedule ON schedule.id = slot.schedule
         WHERE slot.schedule = ? AND slot.slot = ?",
    )?;
    let mut rows = statement.query(params![schedule.as_bytes(), slot.millis()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let damaged = |column| Fault::Corrupt { table: "schedule", column, id: schedule.to_string() };
    let (tenant, name): (String, String) = (row.get(3)?, row.get(4)?);
    let tenant = TenantName::new(&tenant).map_err(|_| damaged("tenant"))?;
    let name = ScheduleName::new(&name).map_err(|_| damaged("name"))?;
    Ok(Some(View::slot(&tenant, &name, slot, schedules::read_outcome(row, schedule)?)))
}

fn view_workflow(
    connection: &Connection,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<View>> {
    let mut statement = connection.prepare_cached(
        "/* audit.workflow */ SELECT status, cancelled FROM workflow WHERE id = ? AND tenant = ?",
    )?;
    let key = params![id.as_bytes(), tenant.as_str()];
    let found = statement.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((status, cancelled)) = found else { return Ok(None) };
    let (status, cancelled): (_, Option<String>) = (status, cancelled);
    let status = links::decode_workflow_status(status, id)?;
    Ok(Some(View::workflow(tenant, id, status, cancelled.as_deref())))
}

fn view_session(scope: &Scope<'_>, id: SessionId) -> Option<View> {
    let session = scope.index.sessions.get(id)?;
    Some(View::session(session.tenant(), id, session.name(), session.draining))
}

fn list(connection: &Connection, page: &ListAudit) -> Result<Vec<AuditEntry>> {
    let ListAudit { tenant, actor, action, target, since, before, limit } = page;
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let (tenant, since) = (tenant.as_ref().map(TenantName::as_str), since.map(Timestamp::millis));
    let mut conditions = vec!["number < ?"];
    let mut values: Vec<&dyn ToSql> = vec![&before];
    let equal: [(_, Option<&dyn ToSql>); 4] = [
        ("tenant = ?", value(&tenant)),
        ("actor = ?", value(actor)),
        ("target = ?", value(target)),
        ("at >= ?", value(&since)),
    ];
    for (condition, value) in equal {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    }
    if let Some(action) = action {
        conditions.push("(action = ? OR substr(action, 1, length(?) + 1) = ? || '.')");
        values.extend([action as &dyn ToSql; 3]);
    }
    values.push(limit);
    let condition = conditions.join(" AND ");
    let select = format!(
        "/* audit.list */ SELECT number, at, actor, tenant, action, target, before, after, request_id
         FROM audit WHERE {condition} ORDER BY number DESC LIMIT ?"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query(&*values)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

fn value<T: ToSql>(value: &Option<T>) -> Option<&dyn ToSql> {
    value.as_ref().map(|value| value as &dyn ToSql)
}

fn entry(row: &Row<'_>) -> Result<AuditEntry> {
    let number: i64 = row.get(0)?;
    let damaged = || Fault::Corrupt { table: "audit", column: "tenant", id: number.to_string() };
    let tenant: Option<String> = row.get(3)?;
    let text =
        |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(column)?.map(Arc::from));
    Ok(AuditEntry {
        number: number.unsigned_abs(),
        at: Timestamp::clamped(row.get(1)?),
        actor: row.get(2)?,
        tenant: tenant.map(|it| TenantName::new(&it).map_err(|_| damaged())).transpose()?,
        action: row.get(4)?,
        target: row.get(5)?,
        before: text(6)?,
        after: text(7)?,
        request_id: row.get(8)?,
    })
}

/// Entries to delete that were made before this time. Answers how many are gone.
struct ForgetAudit {
    before: Timestamp,
    limit: u32,
}

impl Verb for ForgetAudit {
    type Answer = u32;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        let before = self.before.min(scope.now.minus(AUDIT_FLOOR)).millis();
        let old = "/* audit.is_old */ SELECT 1 FROM audit WHERE at < ? LIMIT 1";
        if !scope.connection.prepare_cached(old)?.exists([before])? {
            // An idle store writes nothing.
            return Ok(0);
        }
        let allow = "/* audit.allow */ UPDATE audit_retention SET before = ?";
        let delete = "/* audit.forget */ DELETE FROM audit WHERE number IN (
            SELECT number FROM audit WHERE at < ? ORDER BY at LIMIT ?)";
        scope.connection.execute(allow, [before])?;
        let gone = scope.connection.execute(delete, params![before, self.limit])?;
        scope.connection.execute(allow, [0])?;
        Ok(u32::try_from(gone).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use crate::sqlite::migrate;

    #[test]
    fn s30_audit_is_append_only() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let insert = "INSERT INTO audit (at, actor, action, target) VALUES (?, 'key:7', 'a', 'b')";
        for at in [10, 20] {
            connection.execute(insert, [at]).unwrap();
        }
        for statement in [
            "UPDATE audit SET actor = 'key:8'",
            "UPDATE audit SET at = 0",
            "DELETE FROM audit",
            "DELETE FROM audit WHERE number = 1",
            "INSERT OR REPLACE INTO audit (number, at, actor, action, target)
             VALUES (1, 10, 'key:8', 'a', 'b')",
        ] {
            let refused = connection.execute(statement, []).unwrap_err().to_string();
            assert!(refused.contains("append-only"), "{statement}: {refused}");
        }
        let count = "SELECT count(*) FROM audit WHERE actor = 'key:7'";
        assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    }
}
