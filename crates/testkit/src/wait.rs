//! The two places where time may pass in a test: asking another process again and again, and
//! letting a stretch of time be the measurement.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// How long anything may take that normally takes milliseconds, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Asks until there is an answer; the pauses grow. For what happens outside this process, which
/// sends no event.
pub async fn eventually<T, F>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(answer) = ask().await {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            bail!("waited {patience:?} in vain: {what}");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Lets time pass because the time itself is what the test is about.
pub async fn observe_for(window: Duration) {
    tokio::time::sleep(window).await;
}

/// Waits for something that happens in this process, within [`PATIENCE`].
pub async fn within<T>(what: &str, event: impl Future<Output = T>) -> anyhow::Result<T> {
    match tokio::time::timeout(PATIENCE, event).await {
        Ok(value) => Ok(value),
        Err(_) => bail!("waited {PATIENCE:?} in vain: {what}"),
    }
}
