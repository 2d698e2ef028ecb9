//! Create, read, change and delete schedules.

pub mod backfill;
mod trigger;

use std::collections::BTreeMap;

use duly_core::id::ScheduleId;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    self, DeleteSchedule, Expected, ListSchedules, PutSchedule, ScheduleChange, SlotRecord,
    SwitchSchedule, Usage,
};
use duly_core::schedule::{Definition, Rule, Schedule, ScheduleStatus, Template};
use duly_core::time::Timestamp;

pub use self::backfill::{Backfill, BackfillSlot};
use super::payloads::BadPayload;
use super::tenants::Denied;
use crate::engine::Engine;
use crate::quotas::admit_one;

/// A schedule to create, or to put in the place of another.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// When it fires. Its own labels and note do not count.
    pub rule: Rule,
    /// What it runs.
    pub template: Template,
    /// Whether it fires.
    pub status: ScheduleStatus,
    /// For people.
    pub note: Option<String>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether a configuration file defines it.
    pub managed: bool,
}

/// A schedule with its texts read.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// The schedule as it is stored.
    pub schedule: Schedule,
    /// When it fires, with the schedule's labels and note.
    pub rule: Rule,
    /// What it runs.
    pub template: Template,
    /// Its next slot; nothing if it is paused or has no other.
    pub next: Option<Timestamp>,
}

/// Why an order for a schedule was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There is no such schedule.
    #[error("there is no schedule of this name")]
    NotFound,
    /// It was changed, or exists although it should not.
    #[error("the schedule is at version {version}")]
    Conflict {
        /// Its version.
        version: u64,
    },
    /// A configuration file defines it, and the order is not from there, or the other way round.
    #[error("the schedule is defined in the configuration, and is changed there")]
    Managed,
    /// The installation has as many schedules as it may.
    #[error("there are as many schedules as there may be")]
    TooMany,
    /// The tenant may not have it, or not run it now.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The tenant may not have a payload of its template.
    #[error("{why}")]
    Payload {
        /// The key of the task, if it starts a workflow.
        key: Option<String>,
        /// Why.
        why: BadPayload,
    },
    /// What is stored of it cannot be read; it can be replaced.
    #[error("the stored schedule is damaged; replace or delete it")]
    Damaged,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// Creates a schedule, or replaces one of the same name. Answers whether it is new.
    pub async fn put_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        new: NewSchedule,
        expected: Expected,
    ) -> Result<(ScheduleView, bool), ScheduleError> {
        self.admit_schedule(tenant, name, &new).await?;
        let now = self.store().now().await?;
        let NewSchedule { rule, template, status, note, labels, managed } = new;
        // A change of what is kept beside the rule must not withdraw slots.
        let rule = Rule { labels: BTreeMap::new(), note: None, ..rule };
        let put = PutSchedule {
            id: ScheduleId::mint(now, self.random().next()),
            tenant: tenant.clone(),
            name: name.clone(),
            definition: Definition::new(&rule, &template),
            labels,
            status,
            note,
            managed,
            expected,
        };
        let change = self.store().put_schedule(put).await?;
        let (schedule, created) = self.changed_schedule(change)?;
        Ok((view(schedule, now)?, created))
    }

    /// Refuses payloads that the tenant may not have, and one more schedule than it may. The number of
    /// those of the server's configuration is not limited.
    async fn admit_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        new: &NewSchedule,
    ) -> Result<(), ScheduleError> {
        let rules = self.payload_rules(tenant).await?;
        match &new.template {
            Template::Task(spec) => {
                let bad = |why| ScheduleError::Payload { key: None, why };
                rules.check(&spec.payload).map_err(bad)?;
            }
            Template::Workflow(spec) => {
                for member in spec.members.tasks() {
                    let key = Some(member.key.clone());
                    let bad = |why| ScheduleError::Payload { key, why };
                    rules.check(&member.spec.payload).map_err(bad)?;
                }
            }
        }
        let limit = self.quotas_of(tenant).await?.schedules;
        if limit.is_none() || new.managed || self.store().schedule(tenant, name).await?.is_some() {
            return Ok(());
        }
        let admitted = admit_one(self.store(), tenant, Usage::Schedules, limit).await?;
        Ok(admitted.map_err(Denied::from)?)
    }

    /// One schedule.
    pub async fn schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<ScheduleView>, ScheduleError> {
        let Some(schedule) = self.store().schedule(tenant, name).await? else { return Ok(None) };
        let now = self.store().now().await?;
        view(schedule, now).map(Some)
    }

    /// One page of schedules, by name, and after which name the next one starts. Those whose texts are
    /// damaged are left out.
    pub async fn schedules(
        &self,
        page: ListSchedules,
    ) -> Result<(Vec<ScheduleView>, Option<ScheduleName>), ScheduleError> {
        let found = self.store().schedules(page).await?;
        let now = self.store().now().await?;
        let views = found.schedules.into_iter().filter_map(|schedule| view(schedule, now).ok());
        Ok((views.collect(), found.next_after))
    }

    /// Deletes a schedule. What it has started stays, as far as it was granted to a worker.
    pub async fn delete_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        expected: Expected,
    ) -> Result<(), ScheduleError> {
        self.drop_schedule(tenant, name, false, expected).await
    }

    /// The same; `managed` says whether the order comes from the configuration.
    pub(crate) async fn drop_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        managed: bool,
        expected: Expected,
    ) -> Result<(), ScheduleError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let delete = DeleteSchedule { tenant, name, managed, expected };
        let change = self.store().delete_schedule(delete).await?;
        self.changed_schedule(change).map(|_| ())
    }

    /// Pauses or resumes a schedule. A note that is left out stays.
    pub async fn switch_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        status: ScheduleStatus,
        note: Option<String>,
        expected: Expected,
    ) -> Result<ScheduleView, ScheduleError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let switch = SwitchSchedule { tenant, name, status, note, expected };
        let change = self.store().switch_schedule(switch).await?;
        let (schedule, _) = self.changed_schedule(change)?;
        let now = self.store().now().await?;
        view(schedule, now)
    }

    /// What became of the last slots of a schedule, newest first.
    pub async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<Vec<SlotRecord>>, ScheduleError> {
        Ok(self.store().slot_records(tenant, name).await?)
    }

    /// The schedule of a change, of which the coordinator is told.
    fn changed_schedule(&self, change: ScheduleChange) -> Result<(Schedule, bool), ScheduleError> {
        match change {
            ScheduleChange::Done { schedule, created } => {
                self.schedule_bell().ring(schedule.id);
                Ok((*schedule, created))
            }
            ScheduleChange::Conflict { version } => Err(ScheduleError::Conflict { version }),
            ScheduleChange::Managed => Err(ScheduleError::Managed),
            ScheduleChange::Unknown => Err(ScheduleError::NotFound),
            ScheduleChange::TooMany => Err(ScheduleError::TooMany),
        }
    }
}

/// A schedule with its texts read, at this time.
fn view(schedule: Schedule, now: Timestamp) -> Result<ScheduleView, ScheduleError> {
    let rule = schedule.definition.rule().ok_or(ScheduleError::Damaged)?;
    let template = schedule.definition.template().ok_or(ScheduleError::Damaged)?;
    let next = match schedule.status {
        ScheduleStatus::Active => rule.next(now),
        ScheduleStatus::Paused => None,
    };
    let (labels, note) = (schedule.labels.clone(), schedule.note.clone());
    Ok(ScheduleView { schedule, rule: Rule { labels, note, ..rule }, template, next })
}
