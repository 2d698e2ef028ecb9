//! The server under load, killed again and again at bad moments, on the same data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use duly_client::wire::TaskView;
use duly_client::{Client, Error};
use duly_core::id::TaskId;
use duly_core::limits::PAGE;
use rand::Rng as _;
use rand::rngs::StdRng;
use tokio::sync::mpsc;

use crate::checker::Evidence;
use crate::load::{self, Load, Progress};
use crate::reader::Readers;
use crate::site::{Site, Sites};
use crate::wait::{observe_for, within};
use crate::{Server, Target};

const CLIENTS: usize = 16;
const READERS: usize = 16;
/// How long an execution takes: longer than a commit, shorter than the life of a server.
const EXECUTION: Duration = Duration::from_millis(30);
/// Acknowledgements between a start and the moment from which a kill is due.
const ACKS_PER_LIFE: std::ops::RangeInclusive<usize> = 60..=140;
/// The kill comes up to this much later.
const OFFSET_MICROS: u64 = 20_000;

/// A run with kills.
#[derive(Debug)]
pub struct Crash {
    binary: PathBuf,
    data: PathBuf,
    extra: Vec<&'static str>,
    random: StdRng,
    server: Server,
    generation: u32,
    sites: Sites,
    target: Target,
    load: Load,
    readers: Readers,
}

/// What one kill hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Executions in the target at the instant of the kill.
    pub executing: usize,
    /// Tasks that the next server found running.
    pub running: usize,
    /// Submits that were under way at the instant of the kill and never answered.
    pub unanswered: usize,
    /// Tasks that the killed server had acknowledged and the next one does not know.
    pub lost: Vec<TaskId>,
}

impl Hit {
    /// Whether it was a bad moment: something ran and somebody waited.
    pub fn is_bad(&self) -> bool {
        self.executing > 0 && self.running > 0 && self.unanswered > 0
    }
}

impl Crash {
    /// Starts the server, its target, the load and the readers.
    pub async fn start(
        binary: &Path,
        data: &Path,
        extra: &[&'static str],
        random: StdRng,
    ) -> anyhow::Result<Self> {
        let server = Server::start(binary, data, extra).await?;
        let target = Target::start(EXECUTION).await?;
        let sites = Sites::default();
        let generation = 1;
        sites.open(Site { generation, client: server.client().clone() });
        let (sender, acks) = mpsc::unbounded_channel();
        let load = Load::start(CLIENTS, sites.clone(), target.task(), sender);
        let readers = Readers::start(READERS, sites.clone(), acks);
        Ok(Self {
            binary: binary.to_owned(),
            data: data.to_owned(),
            extra: extra.to_vec(),
            random,
            server,
            generation,
            sites,
            target,
            load,
            readers,
        })
    }

    /// Waits for a random moment at which a task runs and a submit waits for its answer, kills
    /// the server, and starts it again. The load goes on only after all that the killed server
    /// had acknowledged has been asked for.
    pub async fn kill(self) -> anyhow::Result<(Self, Hit)> {
        let mut run = within("a moment for the kill", self.bad_moment()).await??;
        let waiting = run.load.progress().in_flight;
        let executing = run.target.in_flight();
        run.server.kill().await?;
        run.sites.close();
        let is_quiet = |progress: &Progress| progress.in_flight.is_empty();
        within("broken connections are noticed", run.load.wait_for(is_quiet)).await??;
        let progress = run.load.progress();
        let cut = |(generation, key): &&(u32, String)| {
            *generation == run.generation && waiting.contains(key)
        };
        let unanswered = progress.unanswered.iter().filter(cut).count();
        run.server = Server::start(&run.binary, &run.data, &run.extra).await?;
        let running = run.server.recovered();
        let lost = within("acknowledged tasks are found", run.lost(&progress)).await??;
        run.generation += 1;
        let client = run.server.client().clone();
        run.sites.open(Site { generation: run.generation, client });
        Ok((run, Hit { executing, running, unanswered, lost }))
    }

    async fn bad_moment(mut self) -> anyhow::Result<Self> {
        let more = self.random.random_range(ACKS_PER_LIFE);
        let goal = self.load.progress().acked.len() + more;
        self.load.wait_for(|progress| progress.acked.len() >= goal).await?;
        observe_for(Duration::from_micros(self.random.random_range(0..OFFSET_MICROS))).await;
        loop {
            self.target.wait_for(|log| log.in_flight > 0).await?;
            self.load.wait_for(|progress| !progress.in_flight.is_empty()).await?;
            if self.target.in_flight() > 0 && self.load.in_flight() > 0 {
                return Ok(self);
            }
        }
    }

    /// What was acknowledged in this generation and is not known.
    async fn lost(&self, progress: &Progress) -> anyhow::Result<Vec<TaskId>> {
        let mut lost = Vec::new();
        let acked = progress.acked.values().filter(|ack| ack.generation == self.generation);
        for ack in acked {
            match self.server.client().get_task(ack.task, None).await {
                Ok(_) => {}
                Err(Error::Problem { problem, .. }) if problem.status == 404 => lost.push(ack.task),
                Err(error) => return Err(error).context("a task could not be read"),
            }
        }
        Ok(lost)
    }

    /// Lets the load end, waits for every outcome, submits every key again, and returns all that
    /// is known.
    pub async fn finish(mut self) -> anyhow::Result<Evidence> {
        let template = self.target.task();
        let acked = self.load.finish().await?.acked;
        let seen = within("every outcome is read", self.readers.settled(acked.len())).await??;
        let client = self.server.client();
        let mut resubmitted = BTreeMap::new();
        for key in acked.keys() {
            resubmitted.insert(key.clone(), load::submit(client, &template, key).await?);
        }
        let stored = all_tasks(client).await?;
        let log = self.target.log();
        ensure!(log.strangers == 0, "{} calls of the target had no task", log.strangers);
        Ok(Evidence { acked, resubmitted, stored, seen, executions: log.executions })
    }
}

/// Every task of a server, page by page.
pub async fn all_tasks(client: &Client) -> anyhow::Result<Vec<TaskView>> {
    let mut tasks = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = client.list_tasks("", Some(PAGE), cursor.as_deref()).await?;
        tasks.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tasks);
        }
    }
}
