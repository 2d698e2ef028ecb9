//! The schedules of the samples.

use anyhow::Context as _;
use duly_core::name::TenantName;
use duly_core::ports::store::Expected;
use duly_engine::Engine;
use duly_engine::command::schedules::{NewSchedule, ScheduleError};
use serde_json::json;

/// Type, which is also the name of its schedule, and when it runs, in UTC.
const SAMPLES: [(&str, &str); 3] = [
    ("daily-report", "0 8 * * MON-FRI"),
    ("cleanup-temp-files", "@hourly"),
    ("data-backup", "30 2 * * *"),
];

/// Creates a schedule for each sample type, unless there is one of its name.
pub(super) async fn create(engine: &Engine) -> anyhow::Result<()> {
    let tenant = TenantName::default_tenant();
    for (task_type, cron) in SAMPLES {
        let body = json!({
            "name": task_type,
            "cron": cron,
            "task": {"type": task_type},
            "note": "a sample",
        });
        let read = duly_api::read_configured_schedule(body.to_string().as_bytes());
        let (name, schedule) = read.expect("the samples are valid");
        let schedule = NewSchedule { managed: false, ..schedule };
        match engine.put_schedule(&tenant, &name, schedule, Expected::Absent).await {
            Ok(_) | Err(ScheduleError::Conflict { .. } | ScheduleError::Managed) => {}
            Err(error) => return Err(error).context("cannot create the schedules of the samples"),
        }
    }
    Ok(())
}
