//! People who cancel, against a worker that claims and finishes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use duly_client::wire::{
    CancelRequest, ClaimRequest, FinishRequest, HeartbeatRequest, LeaseStatus, LeaseView,
    OutcomeKind, OutcomeView, RegisterRequest,
};
use duly_client::{Client, Error};
use duly_core::id::{SessionId, TaskId};
use duly_core::state::Status;
use duly_testkit::report;
use duly_testkit::wait::{PATIENCE, eventually, observe_for};
use futures_util::future::{join_all, try_join_all};
use rand::Rng as _;
use rand::seq::SliceRandom as _;

use super::{Site, task};

/// How many tasks are raced for in one round.
const ROUND: usize = 20;
/// The least number of rounds, and how many there may be until every kind of race was won often enough.
const ROUNDS: usize = 100;
const MOST_ROUNDS: usize = 1_000;
/// How often each kind must win, or the race was none.
const EACH: usize = 100;

/// How often each kind of race was won.
#[derive(Debug, Default)]
struct Winners {
    /// The task was cancelled before the worker claimed it.
    cancel_before_claim: usize,
    /// The task was cancelled while it ran, and its worker was refused.
    cancel_before_finish: usize,
    /// The worker finished first, and the cancel was refused.
    finish: usize,
}

/// How long cancels wait before they start; if negative, what they race against waits. It moves
/// towards the side that loses, so that the race is close on any machine.
#[derive(Debug, Default)]
struct HeadStart {
    micros: i64,
}

impl HeadStart {
    const STEP: i64 = 100;

    fn adjust(&mut self, cancel_is_ahead: bool) {
        self.micros += if cancel_is_ahead { Self::STEP } else { -Self::STEP };
    }

    /// Runs both sides, the slower one first.
    async fn race<A, B>(
        &self,
        cancel: impl Future<Output = A>,
        other: impl Future<Output = B>,
    ) -> (A, B) {
        let pause = Duration::from_micros(self.micros.unsigned_abs());
        let pause_if = async |waits: bool| {
            if waits {
                observe_for(pause).await;
            }
        };
        let cancel = async {
            pause_if(self.micros > 0).await;
            cancel.await
        };
        let other = async {
            pause_if(self.micros < 0).await;
            other.await
        };
        tokio::join!(cancel, other)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_finish_have_one_winner_each() -> anyhow::Result<()> {
    let site = Site::start(&[]).await?;
    let mut random = report::seeded("cancel_and_finish_have_one_winner_each")?;
    let mut runner = Runner::register(site.server.client()).await?;
    let mut winners = Winners::default();
    let (mut against_claim, mut against_finish) = (HeadStart::default(), HeadStart::default());
    let mut rounds = 0;
    while rounds < ROUNDS || winners.least() < EACH {
        ensure!(rounds < MOST_ROUNDS, "after {rounds} rounds one side never wins: {winners:?}");
        rounds += 1;
        let mut ids = site.submit_all(&vec![task("race", Duration::ZERO); ROUND]).await?;
        ids.shuffle(&mut random);
        let (cancelled, finished) = if random.random() {
            let (cancelled, leases) = against_claim.race(runner.cancel(&ids), runner.claim()).await;
            let leases = leases?;
            against_claim.adjust(leases.len() < ROUND / 2);
            (cancelled?, runner.finish(leases).await?)
        } else {
            let leases = runner.claim().await?;
            let race = against_finish.race(runner.cancel(&ids), runner.finish(leases));
            let (cancelled, finished) = race.await;
            against_finish.adjust(winners.cancel_before_finish > winners.finish);
            (cancelled?, finished?)
        };
        runner.sequence += u64::from(!finished.is_empty());
        for id in ids {
            let status = site.get(id).await?.status;
            winners.judge(status, cancelled[&id], finished.get(&id).copied())?;
        }
    }
    report::say(&format!("{winners:?} in {rounds} rounds"));
    Ok(())
}

/// A worker that holds leases it has not started learns of a cancel at once, and not only with its
/// next heartbeat, which is 10 s away here.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_cancelled_before_its_start_is_not_started() -> anyhow::Result<()> {
    let site = Site::start_with(&["--concurrency", "0", "--session-ttl", "30s"]).await?;
    let worker = site.worker("ahead", 1).await?;
    // Short tasks first, so that the worker takes leases ahead.
    let short = site.submit_all(&vec![task("work", Duration::ZERO); 50]).await?;
    for id in short {
        site.outcome(id).await?;
    }
    let long = site.submit(task("work", Duration::from_millis(800))).await?;
    site.until("the long task runs", |effects| {
        effects.iter().any(|line| line.event.task == long).then_some(())
    })
    .await?;
    let waiting = site.submit_all(&vec![task("work", Duration::ZERO); 10]).await?;
    let client = site.server.client();
    let leased = || async {
        let first = client.get_task(waiting[0], None).await.ok()?;
        (first.status == Status::Running).then_some(())
    };
    eventually("leases are taken ahead", PATIENCE, leased).await?;
    for id in &waiting {
        client.cancel_task(*id, &CancelRequest::default()).await?;
    }
    assert_eq!(site.outcome(long).await?.status, Status::Success, "the long one was not cancelled");
    // Whatever the worker would start now, it starts before this one.
    let last = site.submit(task("work", Duration::ZERO)).await?;
    site.outcome(last).await?;
    let started = site.effects()?.into_iter().map(|line| line.event.task).collect::<HashSet<_>>();
    let wrongly: Vec<_> = waiting.iter().filter(|id| started.contains(*id)).collect();
    assert!(wrongly.is_empty(), "cancelled, and started afterwards: {wrongly:?}");
    worker.stop().await
}

impl Winners {
    /// How often the kind has won that won least.
    fn least(&self) -> usize {
        self.cancel_before_claim.min(self.cancel_before_finish).min(self.finish)
    }

    /// Counts one task; an error if it has no winner, or two.
    fn judge(
        &mut self,
        status: Status,
        cancelled: bool,
        finished: Option<LeaseStatus>,
    ) -> anyhow::Result<()> {
        let winner = match (cancelled, finished) {
            (true, None) => &mut self.cancel_before_claim,
            (true, Some(LeaseStatus::LeaseLost)) => &mut self.cancel_before_finish,
            (false, Some(LeaseStatus::Done)) => &mut self.finish,
            other => anyhow::bail!("no winner, or two: {other:?}, the task is {status}"),
        };
        *winner += 1;
        let expected = if cancelled { Status::Cancelled } else { Status::Success };
        ensure!(status == expected, "the task is {status} instead of {expected}");
        Ok(())
    }
}

/// A worker by hand, so that claims and finishes happen when the test wants them.
struct Runner {
    client: Client,
    session: SessionId,
    sequence: u64,
}

impl Runner {
    async fn register(client: &Client) -> anyhow::Result<Self> {
        let worker = RegisterRequest {
            name: None,
            types: vec!["race".to_owned()],
            queues: Vec::new(),
            capacity: None,
        };
        let session = client.register(&worker).await?.session_id;
        Ok(Self { client: client.clone(), session, sequence: 1 })
    }

    async fn claim(&self) -> anyhow::Result<Vec<LeaseView>> {
        let claim = ClaimRequest::new(self.session, self.sequence, ROUND);
        // A sign of life with every claim: a round is far shorter than the TTL.
        self.client.heartbeat(self.session, &HeartbeatRequest::default()).await?;
        Ok(self.client.claim(&claim).await?.leases)
    }

    /// Finishes each lease in a request of its own, all at once.
    async fn finish(&self, leases: Vec<LeaseView>) -> anyhow::Result<HashMap<TaskId, LeaseStatus>> {
        let calls = leases.iter().map(|lease| async {
            let outcome = OutcomeView {
                elapsed_seconds: None,
                task_id: lease.task.task_id,
                epoch: lease.epoch,
                outcome: OutcomeKind::Success,
                result: None,
                error: None,
                after_seconds: None,
                progress: None,
                log: None,
                log_offset: 0,
                then: None,
            };
            let request = FinishRequest { session_id: self.session, outcomes: vec![outcome] };
            let answer = self.client.finish(&request).await?;
            let item = answer.items.first().context("no answer")?;
            anyhow::Ok((item.task_id, item.status))
        });
        Ok(try_join_all(calls).await?.into_iter().collect())
    }

    /// Cancels each task in a request of its own, all at once; tells which were cancelled.
    async fn cancel(&self, ids: &[TaskId]) -> anyhow::Result<HashMap<TaskId, bool>> {
        let order = CancelRequest { reason: Some("a race".to_owned()) };
        let calls = ids.iter().map(|id| async {
            match self.client.cancel_task(*id, &order).await {
                Ok(_) => Ok((*id, true)),
                Err(error) if error.code() == Some("STATE_CONFLICT") => Ok((*id, false)),
                Err(error) => Err(error),
            }
        });
        let answers: Vec<Result<_, Error>> = join_all(calls).await;
        Ok(answers.into_iter().collect::<Result<_, _>>()?)
    }
}
