//! What a tenant may use, and how much of it is used.

use std::time::Duration;

use duly_core::name::TenantName;
use duly_core::ports::store::{self, Store, Usage};
use duly_core::tenant::Quotas;
use parking_lot::Mutex;
use tokio::time::Instant;

/// For how long a count of waiting tasks is gone by.
const FRESH: Duration = Duration::from_secs(1);
/// Counting takes at most one part in this many of the time.
const SHARE: u32 = 20;

/// A quota that an order would exceed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quota `{quota}` of tenant {tenant} is {limit}; {advice}")]
pub struct QuotaExceeded {
    /// Which, as in the record of the tenant.
    pub quota: &'static str,
    /// Whose.
    pub tenant: TenantName,
    /// Its value.
    pub limit: u32,
    /// When it may be kept again; nothing if time alone changes nothing.
    pub retry_after: Option<Duration>,
    /// What to do.
    pub advice: &'static str,
}

/// How much of a tenant's quotas is used on this node.
#[derive(Default)]
pub(crate) struct Gate {
    bucket: Mutex<Option<Bucket>>,
    waiting: tokio::sync::Mutex<Option<Count>>,
}

/// How many submits are left.
struct Bucket {
    /// Below zero after a batch that was larger than a second's worth.
    left: f64,
    at: Instant,
}

/// How many tasks waited at a moment.
struct Count {
    waiting: u32,
    /// Submitted through this node since.
    since: u32,
    until: Instant,
}

impl Gate {
    /// Counts the submit of so many tasks, or refuses it. What is refused counts nothing.
    pub(crate) async fn admit(
        &self,
        store: &dyn Store,
        tenant: &TenantName,
        quotas: &Quotas,
        tasks: usize,
    ) -> store::Result<Result<(), QuotaExceeded>> {
        let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
        if let Some(limit) = quotas.waiting_tasks {
            let mut count = self.waiting.lock().await;
            let known = match count.take().filter(|known| Instant::now() < known.until) {
                Some(known) => known,
                None => Count::read(store, tenant, limit).await?,
            };
            let known = count.insert(known);
            let then = known.waiting.saturating_add(known.since).saturating_add(tasks);
            if then > limit {
                let wait = known.until.saturating_duration_since(Instant::now());
                return Ok(Err(too_many_waiting(tenant, limit, wait)));
            }
            if let Some(limit) = quotas.submits_per_second
                && let Err(wait) = self.take(limit, tasks)
            {
                return Ok(Err(too_fast(tenant, limit, wait)));
            }
            known.since = known.since.saturating_add(tasks);
            return Ok(Ok(()));
        }
        let limit = quotas.submits_per_second;
        let taken = limit.map_or(Ok(()), |limit| self.take(limit, tasks));
        Ok(taken.map_err(|wait| too_fast(tenant, limit.unwrap_or_default(), wait)))
    }

    /// Takes so many submits of a second's worth; else says how long to wait. A batch that is larger than
    /// that passes when nothing else did for a second, and those behind it wait the longer.
    fn take(&self, per_second: u32, tasks: u32) -> Result<(), Duration> {
        let (most, now) = (f64::from(per_second), Instant::now());
        let mut bucket = self.bucket.lock();
        let before = bucket.take().map_or(most, |bucket| {
            let gained = now.duration_since(bucket.at).as_secs_f64() * most;
            (bucket.left + gained).min(most)
        });
        let needed = f64::from(tasks).min(most);
        // A quota of nothing lets nothing pass, ever.
        let passes = before >= needed && per_second > 0;
        let left = if passes { before - f64::from(tasks) } else { before };
        *bucket = Some(Bucket { left, at: now });
        if passes {
            return Ok(());
        }
        let seconds = ((needed - before) / most.max(1.0)).clamp(0.001, 3_600.0);
        Err(Duration::from_secs_f64(seconds))
    }
}

impl Count {
    async fn read(store: &dyn Store, tenant: &TenantName, limit: u32) -> store::Result<Self> {
        let start = Instant::now();
        let counted = store.usage(tenant, Usage::WaitingTasks, limit).await?;
        let rest = start.elapsed() * SHARE;
        let waiting = counted.count.saturating_add(u32::from(counted.more));
        Ok(Self { waiting, since: 0, until: start + rest.max(FRESH) })
    }
}

fn too_many_waiting(tenant: &TenantName, limit: u32, wait: Duration) -> QuotaExceeded {
    QuotaExceeded {
        quota: "waitingTasks",
        tenant: tenant.clone(),
        limit,
        retry_after: Some(wait),
        advice: "submit again when some of its tasks have started, or ask for a higher one",
    }
}

fn too_fast(tenant: &TenantName, limit: u32, wait: Duration) -> QuotaExceeded {
    QuotaExceeded {
        quota: "submitsPerSecond",
        tenant: tenant.clone(),
        limit,
        retry_after: Some(wait),
        advice: "submit more slowly, or ask for a higher one",
    }
}

/// Refuses one thing more of which the tenant has as many as it may.
pub(crate) async fn admit_one(
    store: &dyn Store,
    tenant: &TenantName,
    of: Usage,
    limit: Option<u32>,
) -> store::Result<Result<(), QuotaExceeded>> {
    let Some(limit) = limit else { return Ok(Ok(())) };
    let counted = store.usage(tenant, of, limit).await?;
    if counted.count < limit {
        return Ok(Ok(()));
    }
    let (quota, advice) = match of {
        Usage::WaitingTasks => ("waitingTasks", "submit again when some of its tasks have started"),
        Usage::Schedules => ("schedules", "delete those without use, or ask for a higher one"),
        Usage::Workflows => ("workflows", "wait until some have ended, or ask for a higher one"),
    };
    Ok(Err(QuotaExceeded { quota, tenant: tenant.clone(), limit, retry_after: None, advice }))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(time: Duration) {
        let never = std::future::pending::<()>();
        assert!(tokio::time::timeout(time, never).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_has_its_worth_of_submits() {
        let gate = Gate::default();
        for _ in 0..5 {
            assert_eq!(gate.take(5, 1), Ok(()));
        }
        let wait = gate.take(5, 1).unwrap_err();
        assert_eq!(wait, Duration::from_millis(200));
        pass(wait).await;
        assert_eq!(gate.take(5, 1), Ok(()));
        pass(Duration::from_secs(60)).await;
        assert_eq!(gate.take(5, 5), Ok(()));
        assert!(gate.take(5, 1).is_err(), "what was not used is not saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_batch_passes_and_is_waited_for() {
        let gate = Gate::default();
        assert_eq!(gate.take(10, 100), Ok(()));
        assert_eq!(gate.take(10, 1).unwrap_err(), Duration::from_millis(9_100));
        pass(Duration::from_millis(9_100)).await;
        assert_eq!(gate.take(10, 1), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_of_nothing_lets_nothing_pass() {
        let gate = Gate::default();
        assert!(gate.take(0, 1).is_err());
        pass(Duration::from_secs(60)).await;
        assert!(gate.take(0, 1).is_err());
    }
}
