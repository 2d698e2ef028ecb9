//! The loop that makes the schedules of the configuration be there, and only those, once for each time
//! that this node begins to lead.

use std::collections::HashSet;
use std::time::Duration;

use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::Expected;
use duly_core::schedule::Schedule;
use tokio_util::sync::CancellationToken;

use crate::command::schedules::{NewSchedule, ScheduleError};
use crate::engine::Engine;
use crate::leader::Leadership;

/// Schedules that are read in one call.
const PAGE: u32 = 1_000;
/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

/// A schedule of the configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredSchedule {
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub name: ScheduleName,
    /// The rest.
    pub schedule: NewSchedule,
}

/// What one pass has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Report {
    put: u32,
    deleted: u32,
    refused: u32,
}

impl Engine {
    /// Keeps these schedules, and deletes those of an earlier configuration, whenever this node begins to
    /// lead. Only a scheduler ever does.
    pub fn keep_configured_schedules(&self, configured: Vec<ConfiguredSchedule>) {
        let keeper = Keeper { engine: self.clone(), configured };
        self.spawn(keeper.run(self.leadership(), self.stop_signal()));
    }
}

struct Keeper {
    engine: Engine,
    configured: Vec<ConfiguredSchedule>,
}

impl Keeper {
    async fn run(self, lead: Leadership, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = lead.while_leading(|| self.apply_once()) => {}
        }
    }

    /// Applies the configuration, as often as the store takes, and then waits: it changes only with a new
    /// start.
    async fn apply_once(&self) {
        loop {
            match self.apply().await {
                Ok(report) => {
                    tracing::info!(?report, "the schedules of the configuration are in effect");
                    return std::future::pending().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the schedules of the configuration wait for the store");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }

    async fn apply(&self) -> Result<Report, ScheduleError> {
        let mut report = Report::default();
        for gone in self.no_longer_configured().await? {
            let (tenant, name) = (&gone.tenant, &gone.name);
            let deleted = self.engine.drop_schedule(tenant, name, true, Expected::Any).await;
            report.deleted += u32::from(note_refusal(tenant, name, deleted, &mut report.refused)?);
        }
        for ConfiguredSchedule { tenant, name, schedule } in &self.configured {
            let put = self.engine.put_schedule(tenant, name, schedule.clone(), Expected::Any).await;
            report.put += u32::from(note_refusal(tenant, name, put, &mut report.refused)?);
        }
        Ok(report)
    }

    /// Schedules that an earlier configuration defined and this one does not.
    async fn no_longer_configured(&self) -> Result<Vec<Schedule>, ScheduleError> {
        let wanted: HashSet<_> = self.configured.iter().map(|it| (&it.tenant, &it.name)).collect();
        let (mut gone, mut seen) = (Vec::new(), 0);
        loop {
            let page = self.engine.store().schedules_changed(seen, PAGE).await?;
            let Some(last) = page.last() else { return Ok(gone) };
            seen = last.version;
            let is_gone = |it: &Schedule| it.managed && !wanted.contains(&(&it.tenant, &it.name));
            gone.extend(page.into_iter().filter(is_gone));
        }
    }
}

/// Whether the change was made. One that is refused does not stop the others; the store's failure does.
fn note_refusal<T>(
    tenant: &TenantName,
    name: &ScheduleName,
    change: Result<T, ScheduleError>,
    refused: &mut u32,
) -> Result<bool, ScheduleError> {
    let why = match change {
        Ok(_) => return Ok(true),
        Err(ScheduleError::NotFound) => return Ok(false),
        Err(ScheduleError::Managed) => {
            "one of this name was created with a request; delete it, and start the leader again"
                .to_owned()
        }
        Err(ScheduleError::Store(error)) => return Err(ScheduleError::Store(error)),
        Err(error) => error.to_string(),
    };
    *refused += 1;
    tracing::error!(%tenant, %name, why, "a schedule of the configuration is not in effect");
    Ok(false)
}
