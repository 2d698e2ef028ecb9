//! How much happened in a run: without these numbers "nothing was wrong" may mean "nothing was
//! tried".

use duly_core::workflow::WorkflowStatus;
use serde::Serialize;

use super::book::{Book, Task, Why};
use super::class::Class;
use super::execution::executions;
use super::faults::Spell;
use super::findings::Findings;
use crate::effects::{Ev, Kind};
use crate::history::FaultKind;

/// Nanoseconds of a second and of a millisecond.
const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// Seconds of a run that are counted one by one; a line that is off by more must not fill memory.
const LONGEST: u64 = 7 * 24 * 60 * 60;

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Tasks whose submit was acknowledged.
    pub acked: u64,
    /// Tasks that are shown at the end.
    pub tasks: u64,
    /// Workflows whose submit was acknowledged.
    pub workflows: u64,
    /// Workflows that are shown as failed at the end.
    pub workflows_failed: u64,
    /// The same: cancelled.
    pub workflows_cancelled: u64,
    /// Executions that began.
    pub executions: u64,
    /// Tasks with executions under two epochs or more.
    pub tasks_executed_again: u64,
    /// Executions that another one followed although the server shows neither a failure nor a loss:
    /// leases that it took back as not started. Faults explain nearly all of them, so that a task
    /// that is released twice may show here alone.
    pub followed_unnoted: u64,
    /// Attempts that were lost with their worker.
    pub lease_losses: u64,
    /// Outcomes that were refused.
    pub refusals: u64,
    /// Calls whose effect is unknown, as their answers say.
    pub unknown_answers: u64,
    /// Calls without any answer.
    pub unanswered: u64,
    /// How many submits were acknowledged, in percent.
    pub submits_ok_percent: f64,
    /// Executions that began before their time.
    pub early_starts: u64,
    /// Executions of tasks with a delay or a jitter, whose starts are judged by the send time.
    pub delayed_starts: u64,
    /// How long after its time and its acknowledgement a task first began: median. Without tasks
    /// that have a delay or a jitter: only the server knows their exact time. Without tasks of
    /// workflows that wait for others.
    pub lateness_p50_ms: f64,
    /// The same: 99th percentile.
    pub lateness_p99_ms: f64,
    /// Faults of all kinds.
    pub faults: u64,
    /// How many of them came while something was under way, in percent.
    pub in_flight_percent: f64,
    /// `kill -9`, of the server and of workers.
    pub kills: u64,
    /// Of the server or of nodes alone.
    pub server_kills: u64,
    /// Processes that were stopped for a while.
    pub pauses: u64,
    /// Processes that were asked to end.
    pub restarts: u64,
    /// Of these, of the database.
    pub database_restarts: u64,
    /// Times in which the database ended all connections.
    pub terminations: u64,
    /// Nodes that were killed while they led.
    pub leader_kills: u64,
    /// The longest time after that until another one led.
    pub leaderless_ms: u64,
    /// Cut connections.
    pub cuts: u64,
    /// Times in which nothing passed.
    pub holds: u64,
    /// Times in which everything was late.
    pub delays: u64,
    /// Answers that were thrown away.
    pub resets: u64,
    /// Times without room on the server's disk.
    pub disk_full: u64,
    /// Times in which a process of the harness did not get to run.
    pub stalls: u64,
    /// Clients that went away.
    pub aborts: u64,
    /// Outcomes that ended a run, in each second since the first line.
    pub ended_per_second: Vec<u64>,
    /// The faults, for the same axis.
    pub fault_marks: Vec<FaultMark>,
}

/// A fault in a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultMark {
    /// What was done.
    pub fault: FaultKind,
    /// To whom.
    pub target: String,
    /// Seconds since the first line.
    pub begin_s: f64,
    /// The same; nothing if it was never over.
    pub end_s: Option<f64>,
}

/// Counts.
pub(super) fn of(book: &Book, findings: &Findings) -> Figures {
    let mut figures = Figures {
        unknown_answers: book.unknown_answers,
        unanswered: length(book.open.len()),
        submits_ok_percent: percent(book.submits_ok, book.submits),
        early_starts: findings.counts().get(&Class::EarlyStart).copied().unwrap_or(0),
        ..Figures::default()
    };
    figures.count_faults(book);
    figures.count_workflows(book);
    let mut lateness = Vec::new();
    for task in &book.tasks {
        figures.count_task(book, task);
        figures.count_marks(book.first, task);
        figures.count_delayed(book, task);
        lateness.extend(lateness_of(book, task));
    }
    lateness.sort_unstable();
    figures.lateness_p50_ms = percentile_ms(&lateness, 50);
    figures.lateness_p99_ms = percentile_ms(&lateness, 99);
    figures
}

impl Figures {
    fn count_faults(&mut self, book: &Book) {
        for spell in book.faults.all() {
            *self.counter(spell.kind) += 1;
        }
        // A stall is not made: it excuses, and does not count. What a kill leads to neither.
        let by_itself = [FaultKind::Stall, FaultKind::Leaderless];
        let made = book.faults.all().iter().filter(|spell| !by_itself.contains(&spell.kind));
        let spells: Vec<&Spell> = made.collect();
        let is_servers = |spell: &&&Spell| spell.kind == FaultKind::Kill && spell.is_servers();
        self.server_kills = length(spells.iter().filter(is_servers).count());
        let is_databases =
            |spell: &&&Spell| spell.kind == FaultKind::Restart && spell.is_database();
        self.database_restarts = length(spells.iter().filter(is_databases).count());
        let all = book.faults.all().iter();
        let leaderless = all.filter(|spell| spell.kind == FaultKind::Leaderless);
        let longest = leaderless.map(|spell| spell.end - spell.begin).max();
        self.leaderless_ms = longest.unwrap_or(0) / MS;
        self.faults = length(spells.len());
        let busy = spells.iter().filter(|spell| spell.in_flight > 0).count();
        self.in_flight_percent = percent(length(busy), self.faults);
        let mark = |spell: &&Spell| FaultMark {
            fault: spell.kind,
            target: spell.target.clone(),
            begin_s: seconds(spell.begin.saturating_sub(book.first)),
            end_s: (spell.end < u64::MAX).then(|| seconds(spell.end.saturating_sub(book.first))),
        };
        self.fault_marks = spells.iter().map(mark).collect();
    }

    fn counter(&mut self, kind: FaultKind) -> &mut u64 {
        match kind {
            FaultKind::Kill => &mut self.kills,
            FaultKind::Pause => &mut self.pauses,
            FaultKind::Restart => &mut self.restarts,
            FaultKind::Abort => &mut self.aborts,
            FaultKind::Cut => &mut self.cuts,
            FaultKind::Hold => &mut self.holds,
            FaultKind::Delay => &mut self.delays,
            FaultKind::Reset => &mut self.resets,
            FaultKind::DiskFull => &mut self.disk_full,
            FaultKind::Terminate => &mut self.terminations,
            FaultKind::Leaderless => &mut self.leader_kills,
            FaultKind::Stall => &mut self.stalls,
        }
    }

    fn count_workflows(&mut self, book: &Book) {
        for workflow in book.workflows.all() {
            self.workflows += u64::from(workflow.acked_at.is_some());
            let status = workflow.shown.as_ref().map(|(_, shown)| shown.status);
            self.workflows_failed += u64::from(status == Some(WorkflowStatus::Failed));
            self.workflows_cancelled += u64::from(status == Some(WorkflowStatus::Cancelled));
        }
    }

    fn count_task(&mut self, book: &Book, task: &Task) {
        self.acked += u64::from(task.acked_at.is_some());
        let Some(end) = &task.end else { return };
        self.tasks += 1;
        let lost = end.attempts.iter().filter(|(_, why)| *why == Why::Lost);
        self.lease_losses += length(lost.count());
        let executions = executions(&task.marks);
        let followed = executions.iter().filter(|it| it.is_followed_unnoted(book, end));
        self.followed_unnoted += length(followed.count());
    }

    fn count_marks(&mut self, first: u64, task: &Task) {
        // Sorted by epoch, hence the first and the last one differ if any two do.
        let mut starts = task.marks.iter().filter(|mark| mark.ev == Ev::Start);
        let epochs = starts.next().zip(starts.next_back());
        self.tasks_executed_again += u64::from(epochs.is_some_and(|(a, b)| a.epoch < b.epoch));
        for mark in &task.marks {
            match (mark.ev, mark.outcome) {
                (Ev::Start, _) => self.executions += 1,
                (Ev::CommitRefused, _) => self.refusals += 1,
                (Ev::CommitOk, Some(Kind::Success | Kind::Fail)) => {
                    self.count_end(mark.at.saturating_sub(first) / SECOND);
                }
                _ => {}
            }
        }
    }

    fn count_delayed(&mut self, book: &Book, task: &Task) {
        if task.key.is_some_and(|key| book.keys[key].delayed_until.is_some()) {
            let starts = task.marks.iter().filter(|mark| mark.ev == Ev::Start);
            self.delayed_starts += length(starts.count());
        }
    }

    fn count_end(&mut self, second: u64) {
        let Some(place) = usize::try_from(second).ok().filter(|_| second < LONGEST) else { return };
        if self.ended_per_second.len() <= place {
            self.ended_per_second.resize(place + 1, 0);
        }
        self.ended_per_second[place] += 1;
    }
}

/// Between the moment from which a task could run and its first start.
fn lateness_of(book: &Book, task: &Task) -> Option<u64> {
    let starts = task.marks.iter().filter(|mark| mark.ev == Ev::Start);
    let start = starts.map(|mark| mark.at).min()?;
    let key = task.key.map(|key| &book.keys[key]);
    if key.is_some_and(|key| key.delayed_until.is_some() || !key.needs.is_empty()) {
        return None;
    }
    let run_at = key.and_then(|key| key.run_at).unwrap_or(0);
    let due = i128::from(run_at) * i128::from(MS) - book.run.real_minus_mono_ns;
    let due = u64::try_from(due.max(0)).ok()?;
    Some(start.saturating_sub(due.max(task.acked_at?)))
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// With one decimal.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part * 1_000 / whole) as f64 / 10.0
}

fn seconds(nanos: u64) -> f64 {
    (nanos / MS) as f64 / 1_000.0
}

fn percentile_ms(sorted: &[u64], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |nanos| (nanos / 1_000) as f64 / 1_000.0)
}
