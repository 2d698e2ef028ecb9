//! The loop that deletes ended tasks after their retention period, sessions that ended long ago, and old
//! entries of the audit log.

use std::sync::Arc;
use std::time::Duration;

use duly_core::limits::{AUDIT_MEMORY, SESSION_MEMORY, STORE_BATCH};
use duly_core::ports::store::{self, Cutoffs, Error, Store, Sweep};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::leader::Leadership;
use crate::settings::CurrentSettings;
use crate::tenants::Tenants;

/// How long the loop waits after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(60);
/// Entries of the audit log that are deleted in one commit.
const AUDIT_PAGE: u32 = 1_000;

/// How often to sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// From the end of one pass to the next, unless a retention changes.
    pub(crate) every: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { every: Duration::from_secs(60 * 60) }
    }
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepReport {
    pub(crate) deleted: u64,
    pub(crate) pages: u32,
    /// Deleted sessions.
    pub(crate) sessions: u64,
    /// Deleted entries of the audit log.
    pub(crate) audit: u64,
}

pub(crate) struct Sweeper {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Arc<CurrentSettings>,
    pub(crate) tenants: Arc<Tenants>,
}

impl Sweeper {
    /// Sweeps while this node leads, until shutdown. A store call that has begun completes; the
    /// next pass deletes the rest.
    pub(crate) async fn run(self, lead: Leadership, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = lead.while_leading(|| self.keep_sweeping()) => {}
        }
    }

    async fn keep_sweeping(&self) {
        let mut own = self.tenants.own_retention();
        loop {
            own.mark_unchanged();
            let known = self.settings.get().await.map_or(0, |settings| settings.version);
            let pause = match self.run_once().await {
                Ok(SweepReport { deleted: 0, sessions: 0, audit: 0, .. }) => self.config.every,
                Ok(report) => {
                    tracing::info!(?report, "old tasks, sessions and audit entries were deleted");
                    self.config.every
                }
                Err(error @ Error::Corrupt { .. }) => {
                    tracing::error!(%error, "the store is damaged; old tasks stay");
                    self.config.every
                }
                Err(error) => {
                    tracing::debug!(%error, "the store is unavailable; old tasks stay meanwhile");
                    BACK_OFF
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.settings.after(known) => {}
                Ok(()) = own.changed() => {}
            }
        }
    }

    /// One pass over all expired tasks, page by page. After each page it sleeps for as long as the
    /// page took, so that other callers have the store at least half of the time.
    async fn run_once(&self) -> store::Result<SweepReport> {
        let sessions = self.forget_sessions().await?;
        let audit = self.forget_audit().await?;
        let mut report = SweepReport { sessions, audit, ..SweepReport::default() };
        let mut after = None;
        loop {
            // Read for every page: a longer retention, also from another node, holds at once.
            let sweep = Sweep { after, ..self.expired().await? };
            if sweep.latest().is_none() {
                return Ok(report);
            }
            let started = Instant::now();
            let swept = self.store.sweep(sweep).await?;
            report.deleted += u64::from(swept.deleted);
            report.pages += 1;
            after = swept.next;
            if after.is_none() {
                return Ok(report);
            }
            tokio::time::sleep(started.elapsed()).await;
        }
    }

    /// The sweep that deletes what has expired by now.
    async fn expired(&self) -> store::Result<Sweep> {
        let retention = self.settings.read().await?.settings.retention;
        let own = self.store.own_retention().await?;
        let now = self.store.now().await?;
        let own =
            own.into_iter().map(|(tenant, own)| (tenant, Cutoffs::of(own.over(retention), now)));
        let tenants = Arc::new(own.collect());
        Ok(Sweep { cutoffs: Cutoffs::of(retention, now), tenants, after: None })
    }

    /// Deletes sessions that ended long ago, page by page. Returns how many.
    async fn forget_sessions(&self) -> store::Result<u64> {
        let before = self.store.now().await?.minus(SESSION_MEMORY);
        let mut forgotten = 0;
        loop {
            let started = Instant::now();
            let page = self.store.forget_sessions(before).await?;
            forgotten += u64::from(page);
            if (page as usize) < STORE_BATCH {
                return Ok(forgotten);
            }
            tokio::time::sleep(started.elapsed()).await;
        }
    }

    /// Deletes old entries of the audit log, page by page. Returns how many.
    async fn forget_audit(&self) -> store::Result<u64> {
        let before = self.store.now().await?.minus(AUDIT_MEMORY);
        let mut forgotten = 0;
        loop {
            let started = Instant::now();
            let page = self.store.forget_audit(before, AUDIT_PAGE).await?;
            forgotten += u64::from(page);
            if page < AUDIT_PAGE {
                return Ok(forgotten);
            }
            tokio::time::sleep(started.elapsed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use duly_core::audit::Author;
    use duly_core::name::{QueueName, TenantName};
    use duly_core::ports::store::{AuditLog as _, PauseQueue, Rules};
    use duly_core::time::Timestamp;
    use duly_store::clock::ManualClock;
    use duly_store::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn entries_of_the_audit_log_are_deleted_after_their_time() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_900_000_000_000)));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        let order = PauseQueue {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            note: String::new(),
        };
        let author = Author { actor: "key:7".into(), request_id: None };
        store.on_behalf_of(author).pause_queue(order).await.unwrap();
        let settings = Arc::new(CurrentSettings::new(store.clone()));
        let tenants = Arc::new(Tenants::new(store.clone()));
        let sweeper = Sweeper { config: Config::default(), store, settings, tenants };
        clock.advance(AUDIT_MEMORY);
        assert_eq!(sweeper.run_once().await.unwrap().audit, 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(sweeper.run_once().await.unwrap().audit, 1);
    }
}
