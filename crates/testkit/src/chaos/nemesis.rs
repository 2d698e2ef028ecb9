//! Breaks things, one after the other, and sees to it that each recovers within a bound. Pauses of
//! workers last longer than the others and happen beside them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tokio::time::Instant;

use super::TTL;
use super::crew::WORKERS;
use super::notes::Notes;
use super::stage::Stage;
use crate::history::{Edge, FaultKind};
use crate::proxy::Proxy;
use crate::wait::{eventually, observe_for};

/// What may be broken beside the pauses, as often as it stands here.
const FAULTS: [FaultKind; 16] = [
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Kill,
    FaultKind::Restart,
    FaultKind::Cut,
    FaultKind::Hold,
    FaultKind::Delay,
    FaultKind::Reset,
    FaultKind::Reset,
    FaultKind::DiskFull,
];
/// After a fault, work has to go on within this time: longer than quarantined tasks may keep
/// all workers busy, each of them alone, while faults go on.
const RECOVERY: Duration = Duration::from_secs(45);
/// Answers that one fault throws away.
const RESETS: u64 = 8;

pub(super) struct Nemesis {
    stage: Arc<Stage>,
    random: StdRng,
    faults: Vec<FaultKind>,
    pauses: bool,
}

impl Nemesis {
    pub(super) fn new(stage: &Arc<Stage>, random: StdRng, wanted: &[FaultKind]) -> Self {
        let wants = |fault: &FaultKind| wanted.is_empty() || wanted.contains(fault);
        let possible = |fault: &FaultKind| *fault != FaultKind::DiskFull || stage.disk.is_some();
        let faults = FAULTS.into_iter().filter(|it| wants(it) && possible(it)).collect();
        Self { stage: Arc::clone(stage), random, faults, pauses: wants(&FaultKind::Pause) }
    }

    /// Breaks things for this long.
    pub(super) async fn torment(mut self, duration: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + duration;
        let mut own = self.random.clone();
        let stage = Arc::clone(&self.stage);
        let pauses = self.pauses;
        let pausing = async {
            while pauses && Instant::now() < end {
                let place = own.random_range(0..WORKERS);
                pause(&stage, place).await?;
                stage.notes.recovered(FaultKind::Pause, RECOVERY).await?;
            }
            anyhow::Ok(())
        };
        let breaking = async {
            while !self.faults.is_empty() && Instant::now() < end {
                let fault = *self.faults.choose(&mut self.random).context("no faults")?;
                self.inflict(fault).await.with_context(|| format!("{fault:?}"))?;
                self.stage.notes.recovered(fault, RECOVERY).await?;
                observe_for(Duration::from_millis(self.random.random_range(10..150))).await;
            }
            anyhow::Ok(())
        };
        tokio::try_join!(pausing, breaking)?;
        Ok(())
    }

    async fn inflict(&mut self, fault: FaultKind) -> anyhow::Result<()> {
        let stage = Arc::clone(&self.stage);
        let place = stage.crew.free_place(self.random.random_range(0..WORKERS));
        let server = self.random.random_bool(0.5);
        match fault {
            FaultKind::Kill if server => stage.kill_server().await,
            FaultKind::Kill => stage.crew.kill(place).await,
            FaultKind::Restart if server => stage.restart_server().await,
            FaultKind::Restart => stage.crew.restart(place).await,
            FaultKind::Pause => pause(&stage, place).await,
            FaultKind::Cut => {
                stage.notes.fault(fault, "link", Edge::Begin)?;
                stage.proxy.cut();
                stage.notes.fault(fault, "link", Edge::End)
            }
            FaultKind::Hold => {
                stage.notes.fault(fault, "link", Edge::Begin)?;
                stage.proxy.hold();
                observe_for(TTL.mul_f64(self.random.random_range(0.3..2.5))).await;
                stage.proxy.pass();
                stage.notes.fault(fault, "link", Edge::End)
            }
            FaultKind::Delay => {
                stage.notes.fault(fault, "link", Edge::Begin)?;
                stage.proxy.delay(Duration::from_millis(self.random.random_range(20..300)));
                observe_for(TTL).await;
                stage.proxy.pass();
                stage.notes.fault(fault, "link", Edge::End)
            }
            FaultKind::Reset => throw_answers_away(&stage.proxy, &stage.notes, RECOVERY).await,
            FaultKind::DiskFull => fill_disk(&stage).await,
            // Those of many nodes, and what is not done on purpose.
            FaultKind::Terminate | FaultKind::Leaderless | FaultKind::Abort | FaultKind::Stall => {
                Ok(())
            }
        }
    }
}

async fn pause(stage: &Stage, place: usize) -> anyhow::Result<()> {
    stage.crew.pause(place, observe_for(TTL * 3 + TTL / 2)).await
}

/// Throws answers away until enough are gone; each is a fault of its own.
pub(super) async fn throw_answers_away(
    proxy: &Proxy,
    notes: &Notes,
    patience: Duration,
) -> anyhow::Result<()> {
    let before = proxy.resets();
    proxy.reset_next(RESETS);
    let enough = || async { (proxy.resets() >= before + RESETS).then_some(()) };
    let happened = eventually("answers are thrown away", patience, enough).await;
    proxy.stop_resets();
    for _ in before..proxy.resets() {
        notes.fault(FaultKind::Reset, "link", Edge::Begin)?;
        notes.fault(FaultKind::Reset, "link", Edge::End)?;
    }
    happened
}

/// Fills the server's disk for a while.
async fn fill_disk(stage: &Stage) -> anyhow::Result<()> {
    let disk = stage.disk.as_ref().context("there is no small disk")?;
    stage.notes.fault(FaultKind::DiskFull, "server", Edge::Begin)?;
    let mut filler = disk.take(0)?;
    let filler = tokio::task::spawn_blocking(move || filler.take_the_rest().map(|()| filler));
    let filler = filler.await??;
    observe_for(TTL).await;
    filler.remove()?;
    stage.notes.fault(FaultKind::DiskFull, "server", Edge::End)
}
