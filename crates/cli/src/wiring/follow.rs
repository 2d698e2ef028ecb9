//! What in this process goes by the settings.

use std::time::Duration;

use duly_core::limits::CONCURRENCY;
use duly_engine::Engine;
use duly_worker::{Concurrency, Config};

/// How long to wait for a store that cannot say what the settings are.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Has the worker in this process run as many handlers as the settings say, or as many as it was
/// started with. Goes on for ever.
pub(super) async fn settings(engine: Engine, started: Config, concurrency: Concurrency) {
    let mut known = loop {
        match engine.settings_in_effect().await {
            Ok(known) => break known,
            Err(error) => tracing::debug!(%error, "the settings cannot be read yet"),
        }
        tokio::time::sleep(BACK_OFF).await;
    };
    loop {
        let places = known.settings.worker_concurrency.unwrap_or(started.concurrency);
        // What was stored by another version may exceed this one's limit.
        concurrency.set(places.clamp(1, CONCURRENCY));
        known = engine.settings_after(known.version).await;
    }
}
