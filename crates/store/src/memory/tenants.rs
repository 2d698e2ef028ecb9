//! The reference model's tenants.

use std::collections::BTreeMap;

use async_trait::async_trait;
use duly_core::limits::TENANTS;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Counted, Expected, PutTenant, Result, TenantChange, TenantRecords, Usage,
};
use duly_core::settings::OwnRetention;
use duly_core::state::Status;
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use duly_core::workflow::WorkflowStatus;

use super::MemoryStore;
use super::model::Model;
use crate::audited::Audited as _;

#[async_trait]
impl TenantRecords for MemoryStore {
    async fn tenants(&self, after: Option<TenantName>, limit: u32) -> Result<Vec<TenantRecord>> {
        let tenants = &self.model.lock().tenants;
        let behind = tenants.values().filter(|it| after.as_ref().is_none_or(|end| it.name > *end));
        Ok(behind.take(limit as usize).cloned().collect())
    }

    async fn tenant(&self, name: &TenantName) -> Result<Option<TenantRecord>> {
        Ok(self.model.lock().tenants.get(name).cloned())
    }

    async fn own_retention(&self) -> Result<BTreeMap<TenantName, OwnRetention>> {
        let tenants = &self.model.lock().tenants;
        let own = tenants.values().filter_map(|it| Some((it.name.clone(), it.settings.retention?)));
        Ok(own.collect())
    }

    async fn put_tenant(&self, put: PutTenant) -> Result<TenantChange> {
        let audited = put.audited();
        let (change, hint) = self.order(|| audited, |model, now| model.put_tenant(put, now));
        self.hint_at(hint);
        Ok(change)
    }

    async fn usage(&self, tenant: &TenantName, of: Usage, up_to: u32) -> Result<Counted> {
        let model = self.model.lock();
        let count = match of {
            Usage::WaitingTasks => {
                let waits = |status| matches!(status, Status::Pending | Status::Blocked);
                let own = model.tasks.values().filter(|it| it.lane.tenant == *tenant);
                own.filter(|task| waits(task.status)).count()
            }
            Usage::Schedules => {
                let all = model.schedules.all.values();
                all.filter(|it| it.schedule.tenant == *tenant).count()
            }
            Usage::Workflows => {
                let own = model.workflows.values().filter(|it| it.tenant == *tenant);
                own.filter(|it| it.status == WorkflowStatus::Running).count()
            }
        };
        Ok(Counted::up_to(up_to, count))
    }
}

impl Model {
    /// Whether nothing of this tenant may be granted.
    pub(super) fn is_suspended(&self, tenant: &TenantName) -> bool {
        self.tenants.get(tenant).is_some_and(|it| it.suspended_at.is_some())
    }

    /// Also answers when something is due, if a tenant goes on.
    fn put_tenant(&mut self, put: PutTenant, now: Timestamp) -> (TenantChange, Option<Timestamp>) {
        let before = self.tenants.get(&put.name).cloned();
        let version = before.as_ref().map(|it| it.version);
        let same = before.as_ref().filter(|it| {
            it.suspended_at.is_some() == put.suspended
                && (&it.note, &it.quotas, &it.settings) == (&put.note, &put.quotas, &put.settings)
        });
        let created = put.expected == Expected::Absent;
        if let Some(same) = same.filter(|same| !created || same.version == 1) {
            let record = Box::new(same.clone());
            return (TenantChange::Done { record, created }, None);
        }
        let is_met = match put.expected {
            Expected::Any => true,
            Expected::Absent => version.is_none(),
            Expected::Version(wanted) => version == Some(wanted),
        };
        if !is_met {
            return (TenantChange::Conflict { version }, None);
        }
        if before.is_none() && self.tenants.len() >= TENANTS as usize {
            return (TenantChange::TooMany, None);
        }
        let since = before.as_ref().and_then(|it| it.suspended_at);
        let record = TenantRecord {
            name: put.name.clone(),
            version: version.unwrap_or(0) + 1,
            suspended_at: put.suspended.then(|| since.unwrap_or(now)),
            note: put.note,
            quotas: put.quotas,
            settings: put.settings,
            created_at: before.as_ref().map_or(now, |it| it.created_at),
        };
        self.tenants.insert(put.name.clone(), record.clone());
        let goes_on = since.is_some() && !put.suspended;
        let waiting = self.tasks.values().filter(|task| {
            goes_on && task.lane.tenant == put.name && task.status == Status::Pending
        });
        let hint = waiting.map(|task| task.run_at).min();
        (TenantChange::Done { record: Box::new(record), created: before.is_none() }, hint)
    }
}
