//! Runs system tasks inside the server: bulk actions and backfills.

mod backfill;
mod bulk;

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::name::{QueueName, TypeName};
use duly_core::ports::store;
use duly_core::task::Failure;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, LocalSession, LocalWorker};

/// System tasks that run at the same time.
const CONCURRENCY: usize = 4;
/// How long to wait after the store did not answer.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why a system task stopped before its end.
#[derive(Debug)]
enum Stopped {
    /// It was aborted, or another worker has its lease.
    Lost,
    /// It cannot be carried out, for this reason.
    Invalid(String),
    /// The store did not answer.
    Store(store::Error),
}

impl From<store::Error> for Stopped {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// Runs until stopped. The end of its session releases the system tasks that run; their next
/// attempts continue from their checkpoints. If another node ends the session, opens a new one.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    let working = async {
        loop {
            let opened = open(&engine).await;
            work(&engine, &opened, &stop).await;
            // The next session may end for the same reason.
            tokio::time::sleep(RETRY_DELAY).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = working => {}
    }
}

/// Runs system tasks until the work source closes.
async fn work(engine: &Engine, opened: &LocalSession, stop: &CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        let Ok(slot) = slot else { return };
        let leases = opened.source.claim(1).await;
        let Some(lease) = leases.ok().and_then(|mut leases| leases.pop()) else { return };
        let (engine, source, stop) = (engine.clone(), Arc::clone(&opened.source), stop.clone());
        let session = opened.session;
        engine.clone().spawn(async move {
            let finish = tokio::select! {
                ended = carry_out(&engine, session, &lease) => finish(&engine, &lease, ended),
                () = stop.cancelled() => None,
            };
            if let Some(finish) = finish {
                source.finish(vec![finish]).await.ok();
            }
            drop(slot);
        });
    }
}

/// Runs a system task from its last checkpoint. Returns its result as JSON.
async fn carry_out(
    engine: &Engine,
    session: SessionId,
    lease: &Lease,
) -> Result<Arc<str>, Stopped> {
    if lease.lane.task_type == TypeName::backfill() {
        return backfill::run(engine, session, lease).await;
    }
    bulk::run(engine, session, lease).await
}

async fn open(engine: &Engine) -> LocalSession {
    loop {
        let worker = LocalWorker {
            name: "system".to_owned(),
            types: vec![TypeName::bulk(), TypeName::backfill()],
            queues: vec![QueueName::system()],
        };
        match engine.open_session(worker).await {
            Ok(opened) => return opened,
            Err(error) => {
                tracing::debug!(%error, "system tasks wait for the store");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// The outcome of a system task; `None` if its lease is lost.
fn finish(engine: &Engine, lease: &Lease, ended: Result<Arc<str>, Stopped>) -> Option<Finish> {
    let outcome = match ended {
        Ok(result) => Outcome::Success { result: Some(result) },
        Err(Stopped::Lost) => return None,
        Err(Stopped::Invalid(why)) => Outcome::Fail { error: Failure::new("INVALID_PAYLOAD", why) },
        Err(Stopped::Store(error)) if error.is_retryable() => {
            let entropy = engine.random().next();
            let error = Failure::new("STORE_UNAVAILABLE", error.to_string());
            Outcome::Retry { error, entropy, after: Some(RETRY_DELAY) }
        }
        Err(Stopped::Store(error)) => {
            Outcome::Fail { error: Failure::new("STORE_FAILED", error.to_string()) }
        }
    };
    Some(Finish::new(lease.task, lease.epoch, outcome))
}
