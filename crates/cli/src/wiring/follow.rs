//! Applies the settings to this process.

use std::time::Duration;

use duly_core::limits::CONCURRENCY;
use duly_engine::Engine;
use duly_worker::{Concurrency, Config};

/// How long to wait before reading the settings again after an error.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Keeps the running slots of the local worker at the number in the settings, or else at the number
/// it was started with. Never returns.
pub(super) async fn follow_settings(engine: Engine, started: Config, concurrency: Concurrency) {
    let mut known = loop {
        match engine.settings_in_effect().await {
            Ok(known) => break known,
            Err(error) => tracing::debug!(%error, "the settings cannot be read yet"),
        }
        tokio::time::sleep(BACK_OFF).await;
    };
    loop {
        let slots = known.settings.worker_concurrency.unwrap_or(started.concurrency);
        // Another version may have stored a number above this version's limit.
        concurrency.set(slots.clamp(1, CONCURRENCY));
        known = engine.settings_after(known.version).await;
    }
}
