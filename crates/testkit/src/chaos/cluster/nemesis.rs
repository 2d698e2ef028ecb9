//! Breaks nodes, their database and what lies between, one after the other, and sees to it that work
//! goes on. Every trouble has its turn in each round; pauses of workers happen beside them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tokio::time::Instant;

use super::Cluster;
use crate::chaos::NODE_TTL;
use crate::chaos::crew::WORKERS;
use crate::chaos::nemesis::throw_answers_away;
use crate::history::FaultKind;
use crate::wait::observe_for;

/// What can be done to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    KillWorker,
    RestartWorker,
    KillNode,
    KillLeader,
    PauseNode,
    StallNode,
    RestartNode,
    CrashDatabase,
    TerminateConnections,
    CutNode,
    CutAll,
    HoldNode,
    DelayAnswers,
    ThrowAnswersAway,
}

/// A round.
const ROUND: [Trouble; 20] = [
    Trouble::KillWorker,
    Trouble::KillWorker,
    Trouble::KillWorker,
    Trouble::RestartWorker,
    Trouble::KillNode,
    Trouble::KillNode,
    Trouble::KillLeader,
    Trouble::PauseNode,
    Trouble::StallNode,
    Trouble::StallNode,
    Trouble::StallNode,
    Trouble::RestartNode,
    Trouble::CrashDatabase,
    Trouble::TerminateConnections,
    Trouble::TerminateConnections,
    Trouble::CutNode,
    Trouble::CutAll,
    Trouble::HoldNode,
    Trouble::DelayAnswers,
    Trouble::ThrowAnswersAway,
];
/// After a fault, work has to go on within this time: nodes and workers must notice, and quarantined
/// tasks may keep all workers busy, each of them alone.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long a node is cut off from its database, in seconds.
const APART: std::ops::Range<f64> = 0.5..10.0;
/// How long a node stalls, in seconds: less than clients wait for an answer, so that it finds their
/// requests when it goes on, and long enough for every reading of the database's clock to be old.
const STALL: std::ops::Range<f64> = 0.6..2.5;
/// How late the answers of the database are, in seconds.
const LATE: std::ops::Range<f64> = 0.6..1.5;

impl Trouble {
    fn kind(self) -> FaultKind {
        match self {
            Self::KillWorker | Self::KillNode => FaultKind::Kill,
            Self::KillLeader => FaultKind::Leaderless,
            Self::PauseNode | Self::StallNode => FaultKind::Pause,
            Self::RestartWorker | Self::RestartNode | Self::CrashDatabase => FaultKind::Restart,
            Self::TerminateConnections => FaultKind::Terminate,
            Self::CutNode | Self::CutAll => FaultKind::Cut,
            Self::HoldNode => FaultKind::Hold,
            Self::DelayAnswers => FaultKind::Delay,
            Self::ThrowAnswersAway => FaultKind::Reset,
        }
    }
}

pub(in crate::chaos) struct Nemesis {
    cluster: Arc<Cluster>,
    random: StdRng,
    round: Vec<Trouble>,
    pauses: bool,
}

impl Nemesis {
    pub(in crate::chaos) fn new(
        cluster: &Arc<Cluster>,
        random: StdRng,
        wanted: &[FaultKind],
    ) -> Self {
        let wants = |fault: FaultKind| wanted.is_empty() || wanted.contains(&fault);
        let round = ROUND.into_iter().filter(|trouble| wants(trouble.kind())).collect();
        Self { cluster: Arc::clone(cluster), random, round, pauses: wants(FaultKind::Pause) }
    }

    /// Breaks things for this long, and one round at least.
    pub(in crate::chaos) async fn torment(mut self, duration: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + duration;
        let mut own = self.random.clone();
        let (cluster, pauses) = (Arc::clone(&self.cluster), self.pauses);
        let pausing = async {
            while pauses && Instant::now() < end {
                let place = own.random_range(0..WORKERS);
                cluster.crew.pause(place, observe_for(NODE_TTL.mul_f64(3.5))).await?;
                cluster.notes.recovered(FaultKind::Pause, RECOVERY).await?;
            }
            anyhow::Ok(())
        };
        let breaking = async {
            let mut rounds = 0;
            while !self.round.is_empty() && (rounds == 0 || Instant::now() < end) {
                self.round.shuffle(&mut self.random);
                for trouble in self.round.clone() {
                    if rounds > 0 && Instant::now() >= end {
                        break;
                    }
                    self.inflict(trouble).await.with_context(|| format!("{trouble:?}"))?;
                    let recovered = self.cluster.notes.recovered(trouble.kind(), RECOVERY).await;
                    recovered.with_context(|| format!("{trouble:?}"))?;
                    let breath = Duration::from_millis(self.random.random_range(10..150));
                    observe_for(breath).await;
                }
                rounds += 1;
            }
            anyhow::Ok(())
        };
        tokio::try_join!(pausing, breaking)?;
        Ok(())
    }

    async fn inflict(&mut self, trouble: Trouble) -> anyhow::Result<()> {
        let cluster = Arc::clone(&self.cluster);
        let worker = cluster.crew.free_place(self.random.random_range(0..WORKERS));
        let node = self.random.random_range(0..cluster.seats.len());
        let all: Vec<_> = (0..cluster.seats.len()).collect();
        let apart = observe_for(Duration::from_secs_f64(self.random.random_range(APART)));
        match trouble {
            Trouble::KillWorker => cluster.crew.kill(worker).await,
            Trouble::RestartWorker => cluster.crew.restart(worker).await,
            Trouble::KillNode => cluster.kill_node(node).await,
            Trouble::KillLeader => cluster.kill_leader().await,
            Trouble::PauseNode => {
                cluster.pause_node(node, observe_for(NODE_TTL.mul_f64(3.5))).await
            }
            Trouble::StallNode => {
                let stall = Duration::from_secs_f64(self.random.random_range(STALL));
                cluster.pause_node(node, observe_for(stall)).await
            }
            Trouble::RestartNode => cluster.restart_node(node).await,
            Trouble::CrashDatabase => {
                let away = Duration::from_millis(self.random.random_range(0..2_000));
                cluster.crash_database(observe_for(away)).await
            }
            Trouble::TerminateConnections => cluster.terminate_connections().await,
            Trouble::CutNode => cluster.part(FaultKind::Cut, &[node], apart).await,
            Trouble::CutAll => cluster.part(FaultKind::Cut, &all, apart).await,
            Trouble::HoldNode => cluster.part(FaultKind::Hold, &[node], apart).await,
            Trouble::DelayAnswers => {
                let late = Duration::from_secs_f64(self.random.random_range(LATE));
                cluster.delay_answers(node, late, observe_for(2 * late)).await
            }
            Trouble::ThrowAnswersAway => {
                let gate = &cluster.seats[node].gate;
                throw_answers_away(gate, &cluster.notes, RECOVERY).await
            }
        }
    }
}
