//! Runs the system's own tasks inside the server: orders for many tasks.

mod bulk;

use std::sync::Arc;
use std::time::Duration;

use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::name::{QueueName, TypeName};
use duly_core::task::Failure;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, LocalWorker, Opened};
use crate::system::bulk::Stopped;

/// Orders that are carried out at the same time.
const AT_ONCE: usize = 4;
/// How long to wait for a store that cannot be asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// Works until it is told to stop. Whatever it is at then goes back with its session, and goes on
/// where it was. A session that others have ended is followed by another one.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    let working = async {
        loop {
            let opened = open(&engine).await;
            work(&engine, &opened, &stop).await;
            // Whatever ended the session may end the next one too.
            tokio::time::sleep(PATIENCE).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = working => {}
    }
}

/// Works until the session's source closes.
async fn work(engine: &Engine, opened: &Opened, stop: &CancellationToken) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let Ok(place) = place else { return };
        let leases = opened.source.claim(1).await;
        // A source that is closed has nothing more.
        let Some(lease) = leases.ok().and_then(|mut leases| leases.pop()) else { return };
        let (engine, source, stop) = (engine.clone(), Arc::clone(&opened.source), stop.clone());
        let session = opened.session;
        engine.clone().spawn(async move {
            let finish = tokio::select! {
                ended = bulk::carry_out(&engine, session, &lease) => finish(&engine, &lease, ended),
                () = stop.cancelled() => None,
            };
            if let Some(finish) = finish {
                source.finish(vec![finish]).await.ok();
            }
            drop(place);
        });
    }
}

async fn open(engine: &Engine) -> Opened {
    loop {
        let worker = LocalWorker {
            name: "system".to_owned(),
            types: vec![TypeName::bulk()],
            queues: vec![QueueName::system()],
        };
        match engine.open_session(worker).await {
            Ok(opened) => return opened,
            Err(error) => {
                tracing::debug!(%error, "the system's own tasks wait for the store");
                tokio::time::sleep(PATIENCE).await;
            }
        }
    }
}

/// The outcome of an order; nothing if it is no longer ours.
fn finish(engine: &Engine, lease: &Lease, ended: Result<Arc<str>, Stopped>) -> Option<Finish> {
    let outcome = match ended {
        Ok(result) => Outcome::Success { result: Some(result) },
        Err(Stopped::Lost) => return None,
        Err(Stopped::Senseless(why)) => {
            Outcome::Fail { error: Failure::new("INVALID_PAYLOAD", why) }
        }
        Err(Stopped::Store(error)) if error.is_retryable() => {
            let entropy = engine.random().next();
            let error = Failure::new("STORE_UNAVAILABLE", error.to_string());
            Outcome::Retry { error, entropy, after: Some(PATIENCE) }
        }
        Err(Stopped::Store(error)) => {
            Outcome::Fail { error: Failure::new("STORE_FAILED", error.to_string()) }
        }
    };
    Some(Finish::new(lease.task, lease.epoch, outcome))
}
