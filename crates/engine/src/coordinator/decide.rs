//! How the coordinator decides slots.

use std::collections::HashMap;
use std::time::Duration;

use duly_core::id::ScheduleId;
use duly_core::limits::{LOOK_AHEAD, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::name::Lane;
use duly_core::ports::store::{self, Decide, Decided, Error, SlotOrder, SlotOutcome};
use duly_core::schedule::{DueSlot, Overlap, SlotRun, Template, Verdict};
use duly_core::settings::Settings;
use duly_core::time::Timestamp;

use super::Coordinator;
use super::book::{Book, Plan};
use super::read::wake;
use crate::rates::Counter;
use crate::slot_run::SlotRunner;
use crate::tenants::AllKnown;

/// Schedules that are decided in one call.
const BATCH: usize = 500;
/// Schedules that are read again in one call.
const REREAD: usize = 100;
/// When to try again to decide a schedule that cannot be decided although the others can.
const RETRY_BLOCKED: Duration = Duration::from_secs(1);
const RETRY_FAILED: Duration = Duration::from_secs(60);
/// How often to look whether the tenant of a schedule goes on.
const RETRY_SUSPENDED: Duration = Duration::from_secs(5);

/// What slots go by beside their schedules.
struct Rules {
    defaults: Settings,
    tenants: AllKnown,
}

/// The decisions of one call.
#[derive(Default)]
struct Batch {
    decisions: Vec<Decide>,
    sent: HashMap<ScheduleId, Sent>,
    orders: usize,
    bytes: usize,
}

/// What to know of a decision when it was made.
struct Sent {
    overlap: Overlap,
    /// Where its position moves from and to.
    moves: (Timestamp, Timestamp),
    generation: u32,
    /// Where its tasks wait.
    lane: Option<Lane>,
}

impl Coordinator {
    /// Decides what is due by now, up to a batch.
    pub(super) async fn decide(&self, book: &mut Book, now: Timestamp) -> store::Result<()> {
        let due = book.due(now, BATCH);
        if due.is_empty() {
            return Ok(());
        }
        let rules = Rules {
            defaults: self.settings.get().await?.settings.clone(),
            tenants: self.tenants.all().await?,
        };
        let mut parts = vec![due];
        while let Some(mut part) = parts.pop() {
            match self.decide_part(book, &part, now, &rules).await {
                Ok(()) => {}
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                // One of them may be to blame: it must not stop the others.
                Err(_) if part.len() > 1 => {
                    let half = part.split_off(part.len() / 2);
                    parts.extend([half, part]);
                }
                Err(error) => postpone(book, part[0], now, &error),
            }
        }
        Ok(())
    }

    async fn decide_part(
        &self,
        book: &mut Book,
        part: &[ScheduleId],
        now: Timestamp,
        rules: &Rules,
    ) -> store::Result<()> {
        let Batch { decisions, sent, .. } = gather(book, part, now, rules);
        if decisions.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = decisions.iter().map(|decision| decision.schedule).collect();
        let answers = self.store.decide_slots(decisions).await?;
        let mut stale = Vec::new();
        for (id, answer) in ids.into_iter().zip(answers) {
            match answer {
                Decided::Done { slots, cancelled } => {
                    self.tell(&sent[&id], &slots, cancelled);
                    let (_, to) = sent[&id].moves;
                    let next = book.plan(id).and_then(|plan| wake(&plan.rule, to, plan.ahead));
                    book.decided(id, to, next);
                }
                Decided::Stale => stale.push(id),
            }
        }
        for page in stale.chunks(REREAD) {
            self.reread(book, page).await?;
        }
        for id in stale {
            let Some(plan) = book.plan(id) else { continue };
            // The answer and what was read contradict each other: do not turn in circles.
            if (plan.generation, plan.position) == (sent[&id].generation, sent[&id].moves.0) {
                book.decided(id, plan.position, Some(now.plus(RETRY_BLOCKED)));
            }
        }
        Ok(())
    }

    /// Passes on what a decision did.
    fn tell(&self, sent: &Sent, slots: &[SlotOutcome], cancelled: Cancelled) {
        if sent.overlap == Overlap::CancelOther {
            self.sessions.tell_cancelled(cancelled);
            self.sessions.cascade_bell.ring();
        }
        let ran = |outcome: &&SlotOutcome| matches!(outcome, SlotOutcome::Ran(SlotRun::Task(_)));
        let lanes = slots.iter().filter(ran).filter_map(|_| sent.lane.as_ref());
        self.sessions.rates.count(Counter::Submitted, lanes);
    }
}

type Cancelled = Vec<(duly_core::id::TaskId, Option<(duly_core::id::SessionId, u32)>)>;

/// Collects decisions until a call is full. What does not fit stays due.
fn gather(book: &mut Book, part: &[ScheduleId], now: Timestamp, rules: &Rules) -> Batch {
    let mut batch = Batch::default();
    for id in part {
        let Some(plan) = book.plan(*id) else { continue };
        if rules.tenants.is_suspended(&plan.tenant) {
            // As if no server ran: the misfire rule decides when the tenant goes on.
            let position = plan.position;
            book.decided(*id, position, Some(now.plus(RETRY_SUSPENDED)));
            continue;
        }
        let Some(template) = Template::decode(&plan.template) else {
            tracing::error!(
                schedule.id = %id,
                schedule.name = %plan.name,
                "the template of a schedule is damaged; it does not fire until it is replaced"
            );
            book.stop(*id);
            continue;
        };
        let slots = due_slots(plan, now);
        if slots.is_empty() {
            // Slots that lie too far in the past are not found any more.
            let (position, next) = (plan.position, plan.rule.next(now));
            book.decided(*id, position, next);
            continue;
        }
        let defaults = rules.tenants.settings(&plan.tenant, rules.defaults.clone());
        if !batch.add(*id, plan, &template, &slots, &defaults) {
            break;
        }
    }
    batch
}

/// The slots of a schedule that are to be decided, oldest first. Those that have come are judged by the
/// misfire rule; nothing can have kept the others.
fn due_slots(plan: &Plan, now: Timestamp) -> Vec<DueSlot> {
    let mut slots = plan.rule.due(plan.position, now).slots;
    if plan.ahead {
        let (from, until) = (plan.position.max(now), now.plus(LOOK_AHEAD));
        let coming = plan.rule.slots(from, until, STORE_BATCH);
        slots.extend(coming.into_iter().map(|slot| DueSlot { slot, verdict: Verdict::Run }));
    }
    slots
}

impl Batch {
    /// Adds slots of a schedule, as many as fit. Answers whether all did.
    fn add(
        &mut self,
        id: ScheduleId,
        plan: &Plan,
        template: &Template,
        slots: &[DueSlot],
        defaults: &Settings,
    ) -> bool {
        let runner = SlotRunner {
            schedule: id,
            generation: plan.generation,
            tenant: &plan.tenant,
            name: &plan.name,
            template,
            defaults,
        };
        let mut orders = Vec::with_capacity(slots.len());
        let mut fits = true;
        for DueSlot { slot, verdict } in slots {
            fits = self.count(*verdict, template, &plan.template);
            if !fits {
                break;
            }
            let order = match verdict {
                Verdict::Run => runner.run(*slot, plan.rule.jitter_of(id, *slot)),
                Verdict::Skip(reason) => SlotOrder::Skip(*reason),
            };
            orders.push((*slot, order));
        }
        if let Some((last, _)) = orders.last() {
            let (overlap, generation) = (plan.rule.overlap, plan.generation);
            let moves = (plan.position, *last);
            let lane = lane(plan, template);
            self.sent.insert(id, Sent { overlap, moves, generation, lane });
            let moves = Some(moves);
            self.decisions.push(Decide { schedule: id, generation, moves, overlap, slots: orders });
        }
        fits
    }

    /// Counts one more slot, if the call has room for it. The first one always fits.
    fn count(&mut self, verdict: Verdict, template: &Template, text: &str) -> bool {
        let (orders, bytes) = match (verdict, template) {
            (Verdict::Skip(_), _) => (1, 0),
            (Verdict::Run, Template::Task(_)) => (1, text.len()),
            (Verdict::Run, Template::Workflow(spec)) => {
                (1 + spec.members.tasks().len(), text.len())
            }
        };
        let is_full = self.orders + orders > STORE_BATCH || self.bytes + bytes > STORE_BATCH_BYTES;
        if is_full && self.orders > 0 {
            return false;
        }
        (self.orders, self.bytes) = (self.orders + orders, self.bytes + bytes);
        true
    }
}

/// Where the tasks of a schedule wait, if it runs tasks.
fn lane(plan: &Plan, template: &Template) -> Option<Lane> {
    let Template::Task(spec) = template else { return None };
    let (queue, task_type) = (spec.queue.clone(), spec.task_type.clone());
    Some(Lane { tenant: plan.tenant.clone(), queue, task_type })
}

/// A schedule that cannot be decided is tried again later.
fn postpone(book: &mut Book, id: ScheduleId, now: Timestamp, error: &Error) {
    let Some(plan) = book.plan(id) else { return };
    let after = if error.is_retryable() {
        tracing::debug!(%error, schedule.name = %plan.name, "a schedule waits for the store");
        RETRY_BLOCKED
    } else {
        tracing::error!(%error, schedule.name = %plan.name, "a schedule cannot fire");
        RETRY_FAILED
    };
    let position = plan.position;
    book.decided(id, position, Some(now.plus(after)));
}

#[cfg(test)]
mod tests;
