//! The audit log: written in the transaction of the change, and read like a list.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::audit::{AuditEntry, Author};
use duly_core::id::{KeyId, ScheduleId, SessionId, TaskId, WorkflowId};
use duly_core::name::{QueueName, ScheduleName, TenantName};
use duly_core::ports::store::{self, AuditLog, ListAudit, Pause, Store, VersionedSettings};
use duly_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::{Fault, Result};
use super::schedules::{self, NAMED};
use super::verb::Scope;
use super::{PostgresStore, keys, row, settings, tasks, tenants, workflows};
use crate::audited::{Change, Object, Subject, View};

#[async_trait]
impl AuditLog for PostgresStore {
    fn on_behalf_of(&self, author: Author) -> Arc<dyn Store> {
        Arc::new(Self { author: Some(author), ..self.clone() })
    }

    async fn audit_log(&self, page: ListAudit) -> store::Result<Vec<AuditEntry>> {
        Ok(self.list_audit(&page).await?)
    }

    async fn forget_audit(&self, before: Timestamp, limit: u32) -> store::Result<u32> {
        let forget = "/* audit.forget */ SELECT duly.forget_audit($1, $2)";
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = self.pool.query(forget, &[&before.millis(), &limit]).await?;
        let gone = rows.first().map(|row| row.try_get::<_, i32>(0)).transpose();
        Ok(gone.map_err(Fault::from)?.map_or(0, i32::unsigned_abs))
    }
}

impl PostgresStore {
    async fn list_audit(&self, page: &ListAudit) -> Result<Vec<AuditEntry>> {
        let ListAudit { tenant, actor, action, target, since, before, limit } = page;
        let before = before.map_or(i64::MAX, |it| i64::try_from(it).unwrap_or(i64::MAX));
        let tenant = tenant.as_ref().map(TenantName::as_str);
        let (since, limit) = (since.map(Timestamp::millis), i64::from(*limit));
        let conditions: [(_, Option<&(dyn ToSql + Sync)>); 5] = [
            ("number < ", Some(&before)),
            ("tenant = ", value(&tenant)),
            ("actor = ", value(actor)),
            ("target = ", value(target)),
            ("at >= ", value(&since)),
        ];
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        for (text, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                texts.push(format!("{text}${}", values.len()));
            }
        }
        // The dot behind both lets `task` stand for `task.cancel` and not for `tasks`.
        let prefix = action.as_ref().map(|action| format!("{action}."));
        if let Some(prefix) = &prefix {
            values.push(prefix);
            texts.push(format!("starts_with(action || '.', ${})", values.len()));
        }
        values.push(&limit);
        let select = format!(
            "/* audit.list */ SELECT number, at, actor, tenant, action, target, before, after,
                    request_id
             FROM duly.audit WHERE {} ORDER BY number DESC LIMIT ${}",
            texts.join(" AND "),
            values.len()
        );
        let rows = self.pool.query(&select, &values).await?;
        rows.iter().map(entry).collect()
    }
}

fn value<T: ToSql + Sync>(value: &Option<T>) -> Option<&(dyn ToSql + Sync)> {
    value.as_ref().map(|value| value as &(dyn ToSql + Sync))
}

fn entry(row: &Row) -> Result<AuditEntry> {
    let number: i64 = row.try_get(0)?;
    let damaged = |_| Fault::Corrupt { table: "audit", column: "tenant", id: number.to_string() };
    let tenant: Option<&str> = row.try_get(3)?;
    let text = |column| Ok::<_, Fault>(row.try_get::<_, Option<&str>>(column)?.map(Arc::from));
    Ok(AuditEntry {
        number: number.unsigned_abs(),
        at: row::instant(row.try_get(1)?),
        actor: row.try_get(2)?,
        tenant: tenant.map(TenantName::new).transpose().map_err(damaged)?,
        action: row.try_get(4)?,
        target: row.try_get(5)?,
        before: text(6)?,
        after: text(7)?,
        request_id: row.try_get(8)?,
    })
}

/// Objects as they were before an order of a user. No other transaction changes them meanwhile.
pub(super) struct Watched(Vec<(Subject, Option<View>)>);

impl Watched {
    pub(super) async fn begin(scope: &Scope<'_>, subjects: Vec<Subject>) -> Result<Self> {
        let mut watched = Vec::with_capacity(subjects.len());
        for subject in subjects {
            hold(scope, &subject).await?;
            let view = view(scope, &subject.object).await?;
            watched.push((subject, view));
        }
        Ok(Self(watched))
    }

    /// Writes an entry for each of them that the order has changed.
    pub(super) async fn write_changes(self, scope: &Scope<'_>, author: &Author) -> Result<()> {
        for (subject, before) in self.0 {
            let after = view(scope, &subject.object).await?;
            if let Some(change) = subject.change(before, after, scope.counted) {
                write(scope, author, &change).await?;
            }
        }
        Ok(())
    }
}

async fn write(scope: &Scope<'_>, author: &Author, change: &Change) -> Result<()> {
    let insert = "/* audit.write */ INSERT INTO duly.audit
            (at, actor, tenant, action, target, before, after, request_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    scope
        .execute(
            insert,
            &[
                &scope.now.millis(),
                &&*author.actor,
                &change.tenant.as_ref().map(TenantName::as_str),
                &change.action,
                &change.target,
                &change.before.as_deref(),
                &change.after.as_deref(),
                &author.request_id.as_deref(),
            ],
        )
        .await?;
    Ok(())
}

/// Locks an object as its orders lock it first.
async fn hold(scope: &Scope<'_>, subject: &Subject) -> Result<()> {
    let (statement, id) = match &subject.object {
        Object::Settings => {
            ("/* audit.hold */ LOCK TABLE duly.settings IN SHARE ROW EXCLUSIVE MODE", None)
        }
        Object::Queue(..) => {
            ("/* audit.hold */ LOCK TABLE duly.pause IN SHARE ROW EXCLUSIVE MODE", None)
        }
        Object::Schedule(..) => {
            ("/* audit.hold */ LOCK TABLE duly.schedule IN SHARE ROW EXCLUSIVE MODE", None)
        }
        Object::Slot(schedule, _) => (
            "/* audit.hold */ SELECT FROM duly.schedule_position WHERE schedule = $1 FOR UPDATE",
            Some(schedules::uuid(*schedule)),
        ),
        Object::Task(_, id) => (
            "/* audit.hold */ SELECT FROM duly.task WHERE id = $1 FOR UPDATE",
            Some(row::uuid(*id)),
        ),
        // Its tasks are to be locked before it.
        Object::Workflow(..) if subject.is_counted() => return Ok(()),
        Object::Workflow(_, id) => (
            "/* audit.hold */ SELECT FROM duly.workflow WHERE id = $1 FOR NO KEY UPDATE",
            Some(row::workflow_uuid(*id)),
        ),
        Object::Session(id) => (
            "/* audit.hold */ SELECT FROM duly.session WHERE id = $1 FOR NO KEY UPDATE",
            Some(row::session_uuid(*id)),
        ),
        // Of two calls that create the same key, the second is to see what the first has made.
        Object::Key(_) => {
            ("/* audit.hold */ LOCK TABLE duly.api_key IN SHARE ROW EXCLUSIVE MODE", None)
        }
        Object::Tenant(_) => {
            ("/* audit.hold */ LOCK TABLE duly.tenant IN SHARE ROW EXCLUSIVE MODE", None)
        }
    };
    match id {
        Some(id) => drop(scope.query(statement, &[&id]).await?),
        None => drop(scope.execute(statement, &[]).await?),
    }
    Ok(())
}

/// An object as it is now.
async fn view(scope: &Scope<'_>, object: &Object) -> Result<Option<View>> {
    let (seen, damaged) = match object {
        Object::Settings => (view_settings(scope).await, View::damaged(None, "settings")),
        Object::Queue(tenant, queue) => {
            (view_queue(scope, tenant, queue).await, View::damaged(Some(tenant), queue))
        }
        Object::Schedule(tenant, name) => {
            (view_schedule(scope, tenant, name).await, View::damaged(Some(tenant), name))
        }
        Object::Slot(schedule, slot) => {
            (view_slot(scope, *schedule, *slot).await, View::damaged(None, schedule))
        }
        Object::Task(tenant, id) => {
            (view_task(scope, tenant, *id).await, View::damaged(Some(tenant), id))
        }
        Object::Workflow(tenant, id) => {
            (view_workflow(scope, tenant, *id).await, View::damaged(Some(tenant), id))
        }
        Object::Session(id) => (view_session(scope, *id).await, View::damaged(None, id)),
        Object::Key(id) => (view_key(scope, *id).await, View::damaged(None, id)),
        Object::Tenant(name) => (view_tenant(scope, name).await, View::damaged(None, name)),
    };
    match seen {
        // Damage must not keep a user from replacing what is damaged.
        Err(Fault::Corrupt { .. }) => Ok(Some(damaged)),
        seen => seen,
    }
}

async fn view_settings(scope: &Scope<'_>) -> Result<Option<View>> {
    let rows = scope.query(settings::NEWEST, &[]).await?;
    let newest = rows.first().map(settings::decode).transpose()?;
    Ok(Some(View::settings(&newest.unwrap_or_else(VersionedSettings::default))))
}

async fn view_queue(
    scope: &Scope<'_>,
    tenant: &TenantName,
    queue: &QueueName,
) -> Result<Option<View>> {
    let select = "/* audit.queue */ SELECT since, note FROM duly.pause
        WHERE tenant = $1 AND queue = $2";
    let rows = scope.query(select, &[&tenant.as_str(), &queue.as_str()]).await?;
    let pause = rows.first().map(|row| {
        Ok::<_, Fault>(Pause { since: row::instant(row.try_get(0)?), note: row.try_get(1)? })
    });
    Ok(Some(View::queue(tenant, queue, pause.transpose()?.as_ref())))
}

async fn view_schedule(
    scope: &Scope<'_>,
    tenant: &TenantName,
    name: &ScheduleName,
) -> Result<Option<View>> {
    let select = schedules::select("audit", NAMED);
    let rows = scope.query(&select, &[&tenant.as_str(), &name.as_str()]).await?;
    let schedule = rows.first().map(schedules::decode).transpose()?;
    Ok(schedule.as_ref().map(View::schedule))
}

async fn view_slot(
    scope: &Scope<'_>,
    schedule: ScheduleId,
    slot: Timestamp,
) -> Result<Option<View>> {
    let select = "/* audit.slot */ SELECT slot.kind, slot.run, slot.reason, s.tenant, s.name
        FROM duly.slot JOIN duly.schedule s ON s.id = slot.schedule
        WHERE slot.schedule = $1 AND slot.slot = $2";
    let id = schedules::uuid(schedule);
    let rows = scope.query(select, &[&id, &slot.millis()]).await?;
    let Some(found) = rows.first() else { return Ok(None) };
    let damaged = |column| row::corrupt("schedule", column, id);
    let tenant = TenantName::new(found.try_get(3)?).map_err(|_| damaged("tenant"))?;
    let name = ScheduleName::new(found.try_get(4)?).map_err(|_| damaged("name"))?;
    let outcome = schedules::decode_outcome(found, 0, id)?;
    Ok(Some(View::slot(&tenant, &name, slot, outcome)))
}

async fn view_task(scope: &Scope<'_>, tenant: &TenantName, id: TaskId) -> Result<Option<View>> {
    let rows = scope.query(&tasks::one(), &[&row::uuid(id), &tenant.as_str()]).await?;
    let task = rows.first().map(row::task).transpose()?;
    Ok(task.as_ref().map(View::task))
}

async fn view_workflow(
    scope: &Scope<'_>,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<View>> {
    let select = "/* audit.workflow */ SELECT status, cancelled FROM duly.workflow
        WHERE id = $1 AND tenant = $2";
    let uuid = row::workflow_uuid(id);
    let rows = scope.query(select, &[&uuid, &tenant.as_str()]).await?;
    let Some(found) = rows.first() else { return Ok(None) };
    let status = workflows::decode_status(found.try_get(0)?, uuid)?;
    Ok(Some(View::workflow(tenant, id, status, found.try_get(1)?)))
}

async fn view_session(scope: &Scope<'_>, id: SessionId) -> Result<Option<View>> {
    let select = "/* audit.session */ SELECT tenant, name, draining FROM duly.session
        WHERE id = $1 AND ended_at IS NULL";
    let uuid = row::session_uuid(id);
    let rows = scope.query(select, &[&uuid]).await?;
    let Some(found) = rows.first() else { return Ok(None) };
    let tenant: Option<&str> = found.try_get(0)?;
    let damaged = |_| row::corrupt("session", "tenant", uuid);
    let tenant = tenant.map(TenantName::new).transpose().map_err(damaged)?;
    Ok(Some(View::session(tenant.as_ref(), id, found.try_get(1)?, found.try_get(2)?)))
}

async fn view_key(scope: &Scope<'_>, id: KeyId) -> Result<Option<View>> {
    let rows = scope.query(&keys::select("audit", "k.id = $1"), &[&keys::uuid(id)]).await?;
    let key = rows.first().map(keys::decode).transpose()?;
    Ok(key.as_ref().map(View::key))
}

async fn view_tenant(scope: &Scope<'_>, name: &TenantName) -> Result<Option<View>> {
    let rows = scope.query(&tenants::select("audit", "name = $1"), &[&name.as_str()]).await?;
    let record = rows.first().map(tenants::decode).transpose()?;
    Ok(record.as_ref().map(View::tenant))
}
