//! A server with nothing to do does nothing.

use std::time::Duration;

use duly_testkit::wait::{PATIENCE, eventually, observe_for};
use duly_testkit::{process, report};

use super::start;

const WINDOW: Duration = Duration::from_secs(10);
/// How long the last writes may take.
const SETTLING: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_writes_nothing() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = start(data.path()).await?;
    let pid = server.pid();
    let log = data.path().join("duly.db-wal");
    eventually("the log has its size", PATIENCE, || async {
        (std::fs::metadata(&log).ok()?.len() >= 16 << 20).then_some(())
    })
    .await?;
    // What was in it is moved right after that.
    observe_for(SETTLING).await;
    let (written, busy) = (process::written_bytes(pid)?, process::processor_time(pid)?);
    observe_for(WINDOW).await;
    let written = process::written_bytes(pid)? - written;
    let busy = process::processor_time(pid)?.saturating_sub(busy);
    let share = busy.as_secs_f64() / WINDOW.as_secs_f64() * 100.0;
    let resident = process::resident_bytes(pid)? >> 20;
    report::say(&format!(
        "idle for {} s: {written} bytes written, {share:.3} % of a core, {resident} MiB resident",
        WINDOW.as_secs()
    ));
    assert_eq!(written, 0);
    assert!(share < 0.5, "{share} % of a core");
    assert!(resident < 100, "{resident} MiB");
    Ok(())
}
