//! A task that kills every worker that runs it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use duly_core::state::Status;
use duly_testkit::{Worker, report};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{DULY, Site, task};

const TRIALS: usize = 20;
/// Servers that are tried side by side.
const LANES: usize = 5;
const INNOCENTS: usize = 50;
const LOSSES: u32 = 3;

/// What one trial cost.
#[derive(Debug)]
struct Trial {
    deaths: usize,
    most_losses: u32,
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_and_takes_no_other_task_with_it() -> anyhow::Result<()> {
    let start = Instant::now();
    let mut lanes = JoinSet::new();
    for _ in 0..LANES {
        lanes.spawn(async {
            let mut trials = Vec::new();
            for _ in 0..TRIALS / LANES {
                trials.push(trial().await?);
            }
            anyhow::Ok(trials)
        });
    }
    let mut trials = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        trials.extend(lane??);
    }
    assert_eq!(trials.len(), TRIALS);
    let deaths: usize = trials.iter().map(|trial| trial.deaths).sum();
    let most = trials.iter().map(|trial| trial.most_losses).max().unwrap_or(0);
    report::say(&format!(
        "{TRIALS} of {TRIALS}: the poison is dead, {} innocents succeeded; {deaths} workers died, \
         no innocent lost more than {most} leases, {:.1} s",
        TRIALS * INNOCENTS,
        start.elapsed().as_secs_f64(),
    ));
    Ok(())
}

async fn trial() -> anyhow::Result<Trial> {
    let limit = LOSSES.to_string();
    let site = Site::start(&["--loss-limit", &limit]).await?;
    let mut tasks = vec![task("work", Duration::from_millis(100)); INNOCENTS];
    tasks.insert(INNOCENTS / 2, task("poison", Duration::ZERO));
    let ids = site.submit_all(&tasks).await?;
    let mut supervisors = JoinSet::new();
    let stop = CancellationToken::new();
    for name in ["one", "two"] {
        let first = site.worker(name, INNOCENTS + 1).await?;
        let (url, effects) = (site.server.url().to_owned(), site.effects.clone());
        supervisors.spawn(supervise(first, name, url, effects, stop.clone()));
    }
    let mut most_losses = 0;
    for (place, id) in ids.iter().enumerate() {
        let outcome = site.outcome(*id).await?;
        if place == INNOCENTS / 2 {
            assert_eq!(outcome.status, Status::Failed);
            assert_eq!(outcome.losses, LOSSES);
            assert_eq!(outcome.error.map(|error| error.code).as_deref(), Some("WORKER_LOST"));
            continue;
        }
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
        most_losses = most_losses.max(outcome.losses);
    }
    stop.cancel();
    let mut deaths = 0;
    while let Some(died) = supervisors.join_next().await {
        deaths += died??;
    }
    assert_eq!(deaths, LOSSES as usize, "the poison alone killed workers, once per loss");
    assert!(most_losses < LOSSES);
    Ok(Trial { deaths, most_losses })
}

/// Starts a worker again whenever it dies, until told to stop; returns how often it died.
async fn supervise(
    mut worker: Worker,
    name: &str,
    url: String,
    effects: PathBuf,
    stop: CancellationToken,
) -> anyhow::Result<usize> {
    let mut deaths = 0;
    loop {
        tokio::select! {
            died = worker.died() => died?,
            () = stop.cancelled() => {
                worker.stop().await?;
                return Ok(deaths);
            }
        }
        deaths += 1;
        let name = format!("{name}-{deaths}");
        worker = Worker::start(DULY.as_ref(), &url, &effects, &name, INNOCENTS + 1).await?;
    }
}
