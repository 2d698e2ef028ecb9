//! How the coordinator learns of schedules.

use std::collections::HashSet;

use duly_core::id::ScheduleId;
use duly_core::limits::LOOK_AHEAD;
use duly_core::ports::store;
use duly_core::schedule::{Overlap, Rule, Schedule, ScheduleStatus, Template};
use duly_core::time::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::book::{Book, Entry, Plan};
use super::{COMPARISON, Coordinator, Known, SAFETY_POLL, SHARED_COMPARISON, SHARED_POLL};

/// Schedules that are read in one call at the start.
const LOAD_PAGE: u32 = 1_000;
/// Schedules that are read in one call later, between two decisions.
const CHANGED_PAGE: u32 = 100;
const PAGE: usize = 100;

type Parsed = Vec<(ScheduleId, Entry)>;

impl Coordinator {
    /// Reads all schedules. While one page is parsed the next one is read.
    pub(super) async fn load(&self) -> store::Result<Known> {
        // What was changed up to now is read anyway.
        drop(self.bell.take());
        let (mut book, mut seen) = (Book::default(), 0);
        let mut parsing: Option<JoinHandle<Parsed>> = None;
        loop {
            let page = self.store.schedules_changed(seen, LOAD_PAGE).await?;
            let last = page.last().map(|schedule| schedule.version);
            let next = last.map(|_| tokio::task::spawn_blocking(|| parse(page)));
            if let Some(parsed) = std::mem::replace(&mut parsing, next) {
                for (id, entry) in parsed.await.expect("parsing does not panic") {
                    book.put(id, entry);
                }
            }
            let Some(last) = last else { break };
            seen = last;
        }
        let (poll_at, compare_at) = (self.next_poll(), self.next_comparison());
        Ok(Known { book, seen, poll_at, compare_at, compared: None })
    }

    /// Reads what was changed since the last look, up to a page of each kind.
    pub(super) async fn read_changes(&self, known: &mut Known) -> store::Result<()> {
        self.read_announced(known).await?;
        if known.poll_at <= Instant::now() {
            self.read_changed(known).await?;
        }
        if known.compare_at <= Instant::now() {
            self.compare(known).await?;
        }
        Ok(())
    }

    /// Reads schedules that use cases of this node have changed.
    async fn read_announced(&self, known: &mut Known) -> store::Result<()> {
        let changed = self.bell.take();
        if changed.many {
            (known.poll_at, known.compare_at) = (Instant::now(), Instant::now());
            known.compared = None;
        }
        let ids: Vec<_> = changed.ids.into_iter().collect();
        for (place, page) in ids.chunks(PAGE).enumerate() {
            if let Err(error) = self.reread(&mut known.book, page).await {
                ids[place * PAGE..].iter().for_each(|id| self.bell.ring(*id));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn read_changed(&self, known: &mut Known) -> store::Result<()> {
        let page = self.store.schedules_changed(known.seen, CHANGED_PAGE).await?;
        known.poll_at = if page.is_empty() { self.next_poll() } else { Instant::now() };
        for schedule in page {
            known.seen = schedule.version;
            if known.book.version(schedule.id) != Some(schedule.version) {
                known.book.put(schedule.id, entry(schedule));
            }
        }
        Ok(())
    }

    /// Compares a page of schedules with the store's.
    async fn compare(&self, known: &mut Known) -> store::Result<()> {
        let page = self.store.schedule_versions(known.compared, LOAD_PAGE).await?;
        let last = page.last().map(|(id, _)| *id);
        let there: HashSet<_> = page.iter().map(|(id, _)| *id).collect();
        let gone = known.book.between(known.compared, last).filter(|id| !there.contains(id));
        for id in gone.collect::<Vec<_>>() {
            known.book.remove(id);
        }
        let is_changed =
            |(id, version): &&(ScheduleId, u64)| known.book.version(*id) != Some(*version);
        let changed: Vec<_> = page.iter().filter(is_changed).map(|(id, _)| *id).collect();
        for page in changed.chunks(PAGE) {
            self.reread(&mut known.book, page).await?;
        }
        known.compared = last;
        known.compare_at = last.map_or_else(|| self.next_comparison(), |_| Instant::now());
        Ok(())
    }

    /// Reads schedules again, whatever is known of them.
    pub(super) async fn reread(&self, book: &mut Book, ids: &[ScheduleId]) -> store::Result<()> {
        let found = self.store.schedules_by_id(ids.to_vec()).await?;
        for id in ids {
            book.remove(*id);
        }
        for schedule in found {
            book.put(schedule.id, entry(schedule));
        }
        Ok(())
    }

    fn next_poll(&self) -> Instant {
        Instant::now() + if self.is_alone() { SAFETY_POLL } else { SHARED_POLL }
    }

    fn next_comparison(&self) -> Instant {
        Instant::now() + if self.is_alone() { COMPARISON } else { SHARED_COMPARISON }
    }
}

fn parse(schedules: Vec<Schedule>) -> Parsed {
    schedules.into_iter().map(|schedule| (schedule.id, entry(schedule))).collect()
}

/// What is kept of a schedule.
fn entry(schedule: Schedule) -> Entry {
    let version = schedule.version;
    let plan = if schedule.status == ScheduleStatus::Active { plan(schedule) } else { None };
    Entry { version, plan }
}

fn plan(schedule: Schedule) -> Option<Plan> {
    let Some(mut rule) = schedule.definition.rule() else {
        tracing::error!(
            schedule.id = %schedule.id,
            schedule.name = %schedule.name,
            "the rule of a schedule is damaged; it does not fire until it is replaced"
        );
        return None;
    };
    // Of what the store keeps beside the rule, nothing is needed here.
    (rule.labels, rule.note) = (Default::default(), None);
    let ahead = rule.overlap == Overlap::Allow
        && matches!(schedule.definition.template(), Some(Template::Task(_)));
    Some(Plan {
        generation: schedule.generation,
        tenant: schedule.tenant,
        name: schedule.name,
        wake: wake(&rule, schedule.position, ahead),
        rule,
        template: schedule.definition.template,
        position: schedule.position,
        ahead,
    })
}

/// When a schedule is decided that is decided up to this position.
///
/// One that is decided ahead is decided as early as may be, unless tasks for half of that time wait
/// already: a schedule with many slots has several of them decided at once.
pub(super) fn wake(rule: &Rule, position: Timestamp, ahead: bool) -> Option<Timestamp> {
    let slot = rule.next(position)?;
    let wake = slot.minus(LOOK_AHEAD).max(position.minus(LOOK_AHEAD / 2));
    Some(if ahead { wake } else { slot })
}
