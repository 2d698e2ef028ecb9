//! The reference model's audit log. What an entry says is shared with the other stores; when one is
//! written is said here.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::audit::{AuditEntry, Author};
use duly_core::limits::AUDIT_FLOOR;
use duly_core::ports::store::{AuditLog, ListAudit, Result, Store};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;
use crate::audited::{Object, Subject, View};

#[async_trait]
impl AuditLog for MemoryStore {
    fn on_behalf_of(&self, author: Author) -> Arc<dyn Store> {
        Arc::new(Self { author: Some(author), ..self.clone() })
    }

    async fn audit_log(&self, page: ListAudit) -> Result<Vec<AuditEntry>> {
        let model = self.model.lock();
        let newest_first = model.audit.iter().rev().filter(|entry| is_wanted(entry, &page));
        Ok(newest_first.take(page.limit as usize).cloned().collect())
    }

    async fn forget_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let before = before.min(self.clock.now().minus(AUDIT_FLOOR));
        let mut left = limit;
        self.model.lock().audit.retain(|entry| {
            let goes = entry.at < before && left > 0;
            left -= u32::from(goes);
            !goes
        });
        Ok(limit - left)
    }
}

fn is_wanted(entry: &AuditEntry, page: &ListAudit) -> bool {
    let ListAudit { tenant, actor, action, target, since, before, limit: _ } = page;
    let is_action = |action: &String| {
        let rest = entry.action.strip_prefix(action.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    tenant.as_ref().is_none_or(|tenant| entry.tenant.as_ref() == Some(tenant))
        && actor.as_ref().is_none_or(|actor| entry.actor == *actor)
        && target.as_ref().is_none_or(|target| entry.target == *target)
        && action.as_ref().is_none_or(is_action)
        && since.is_none_or(|since| entry.at >= since)
        && before.is_none_or(|before| entry.number < before)
}

impl MemoryStore {
    /// Carries an order out, and writes down what it has changed if it is a user's.
    pub(super) fn order<T>(
        &self,
        audited: impl FnOnce() -> Vec<Subject>,
        order: impl FnOnce(&mut Model, Timestamp) -> T,
    ) -> T {
        let (now, mut model) = (self.clock.now(), self.model.lock());
        let Some(author) = &self.author else { return order(&mut model, now) };
        let look = |subject: Subject| (model.view(&subject.object), subject);
        let watched: Vec<_> = audited().into_iter().map(look).collect();
        model.counted = 0;
        let answer = order(&mut model, now);
        for (before, subject) in watched {
            model.write_change(author, subject, before, now);
        }
        answer
    }
}

impl Model {
    fn write_change(
        &mut self,
        author: &Author,
        subject: Subject,
        before: Option<View>,
        now: Timestamp,
    ) {
        let after = self.view(&subject.object);
        let Some(change) = subject.change(before, after, self.counted) else { return };
        self.audited += 1;
        self.audit.push(AuditEntry {
            number: self.audited,
            at: now,
            actor: author.actor.to_string(),
            tenant: change.tenant,
            action: change.action.to_owned(),
            target: change.target,
            before: change.before,
            after: change.after,
            request_id: author.request_id.as_deref().map(str::to_owned),
        });
    }

    fn view(&self, object: &Object) -> Option<View> {
        match object {
            Object::Settings => Some(View::settings(&self.newest_settings())),
            Object::Queue(tenant, queue) => {
                let pause = self.paused.get(&(tenant.clone(), queue.clone()));
                Some(View::queue(tenant, queue, pause))
            }
            Object::Schedule(tenant, name) => {
                let id = self.schedule_named(tenant, name)?;
                Some(View::schedule(&self.schedules.all[&id].schedule))
            }
            Object::Slot(schedule, slot) => {
                let stored = self.schedules.all.get(schedule)?;
                let (schedule, outcome) = (&stored.schedule, *stored.slots.get(slot)?);
                Some(View::slot(&schedule.tenant, &schedule.name, *slot, outcome))
            }
            Object::Task(tenant, id) => self.get(tenant, *id).as_ref().map(View::task),
            Object::Workflow(tenant, id) => {
                let found = self.workflows.get(id).filter(|it| it.tenant == *tenant)?;
                Some(View::workflow(tenant, *id, found.status, found.cancelled.as_deref()))
            }
            Object::Session(id) => {
                let session = self.sessions.get(id)?;
                let opened = &session.opened;
                Some(View::session(opened.tenant.as_ref(), *id, &opened.name, session.draining))
            }
            Object::Key(id) => self.api_keys.get(id).map(|stored| View::key(&stored.key)),
            Object::Tenant(name) => self.tenants.get(name).map(View::tenant),
        }
    }
}
