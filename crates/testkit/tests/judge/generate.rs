//! Random histories in which nothing is wrong: a server that keeps its promises, seen through
//! kills, pauses, lost answers and cancels.

use duly_core::state::Status;
use duly_testkit::effects::{Effect, Ev, Kind};
use duly_testkit::history::{FaultKind, Phase, Shown, Verb};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::history::{About, History, TTL, effect, id};

/// When everything is shown: long after the last event.
const END: u64 = 1_000_000;
/// Leases of a task until it is made to succeed.
const LEASES: u32 = 5;

/// What becomes of one lease.
#[derive(Clone, Copy)]
enum Fate {
    Success,
    SuccessUnknown,
    SuccessKilled,
    SuccessRefused,
    Fail,
    Retry,
    RetryUnknown,
    Killed,
    KilledAfterEnd,
    Paused,
    StartedLate,
    StartUnheard,
    Timeout,
    Released,
    LostUnseen,
    DiedByItself,
    GivenUp,
    CancelWaiting,
    CancelRunning,
}

const FATES: [Fate; 19] = [
    Fate::Success,
    Fate::SuccessUnknown,
    Fate::SuccessKilled,
    Fate::SuccessRefused,
    Fate::Fail,
    Fate::Retry,
    Fate::RetryUnknown,
    Fate::Killed,
    Fate::KilledAfterEnd,
    Fate::Paused,
    Fate::StartedLate,
    Fate::StartUnheard,
    Fate::Timeout,
    Fate::Released,
    Fate::LostUnseen,
    Fate::DiedByItself,
    Fate::GivenUp,
    Fate::CancelWaiting,
    Fate::CancelRunning,
];

/// Makes a history of so many tasks.
pub(crate) fn history(seed: u64, tasks: usize) -> History {
    let mut maker =
        Maker { random: StdRng::seed_from_u64(seed), history: History::default(), workers: 0 };
    if maker.random.random_bool(0.3) {
        maker.break_something();
    }
    for number in 0..tasks {
        maker.submit(&format!("t{number}"));
    }
    maker.history
}

struct Maker {
    random: StdRng,
    history: History,
    workers: u32,
}

/// A task on its way.
struct Going<'a> {
    name: &'a str,
    now: u64,
    epoch: u32,
    charged: u32,
    attempts: Vec<(u32, String)>,
    is_acked: bool,
    end: Option<Status>,
    /// Makes the next lease one that is started at once, by this process if it matters.
    forced: Option<(String, u32)>,
}

impl Going<'_> {
    fn note(&mut self, code: &str) {
        self.attempts.push((self.epoch, code.to_owned()));
        self.charged += u32::from(code != "WORKER_LOST");
    }
}

impl Maker {
    /// Faults that reach everybody.
    fn break_something(&mut self) {
        for _ in 0..self.random.random_range(1..4) {
            let from = self.random.random_range(0..20_000);
            let to = from + self.random.random_range(0..1_500);
            let faults = [
                (FaultKind::Kill, "server"),
                (FaultKind::Pause, "server"),
                (FaultKind::DiskFull, "server"),
                (FaultKind::Hold, "link"),
                (FaultKind::Reset, "link"),
                (FaultKind::Abort, "clients"),
            ];
            let (fault, target) = *faults.choose(&mut self.random).expect("there are some");
            self.history.fault(from, to, fault, target);
        }
    }

    fn submit(&mut self, name: &str) {
        let at = self.random.random_range(0..5_000);
        let (mut due, mut delay, mut jitter) = (None, None, None);
        match self.random.random_range(0..20) {
            0..6 => due = Some(at + self.random.random_range(0..3_000)),
            6..10 => delay = Some(self.random.random_range(0..3_000)),
            10 => jitter = Some(self.random.random_range(1..500)),
            _ => {}
        }
        if delay.is_some() && self.random.random() {
            jitter = Some(self.random.random_range(1..500));
        }
        let about = About { key: name, task: name, due, delay, jitter };
        let (answers, exists): (&[Option<Phase>], bool) = match self.random.random_range(0..20) {
            0 => (&[Some(Phase::Info)], false),
            1 => (&[Some(Phase::Fail)], false),
            2 => (&[None], true),
            3 => (&[Some(Phase::Info)], true),
            4 => (&[Some(Phase::Info), Some(Phase::Ok)], true),
            5 => (&[Some(Phase::Fail), Some(Phase::Ok)], true),
            _ => (&[Some(Phase::Ok)], true),
        };
        for (answer, at) in answers.iter().zip(at..) {
            self.history.call(at, Verb::Submit, *answer, &about);
        }
        let is_acked = answers.contains(&Some(Phase::Ok));
        // The server may have got the first submit, and draws the jitter.
        let drawn = jitter.map_or(0, |jitter| self.random.random_range(0..=jitter));
        let relative = at + u64::from(delay.unwrap_or(0)) + u64::from(drawn);
        let now = due.unwrap_or(relative).max(at + 3);
        let (epoch, charged, attempts) = (0, 0, Vec::new());
        let (end, forced) = (None, None);
        if exists {
            self.live(Going { name, now, epoch, charged, attempts, is_acked, end, forced });
        }
    }

    fn live(&mut self, mut task: Going<'_>) {
        while task.end.is_none() {
            task.now += self.random.random_range(0..50);
            let fate = if task.epoch >= LEASES || task.forced.is_some() {
                Fate::Success
            } else {
                *FATES.choose(&mut self.random).expect("there are some")
            };
            self.lease(&mut task, fate);
        }
        let lost = task.attempts.iter().filter(|(_, code)| code == "WORKER_LOST").count();
        let shown = Shown {
            task: id(task.name),
            key: Some(task.name.to_owned()),
            status: task.end.expect("it has ended"),
            run: 1,
            attempt: task.charged,
            epoch: task.epoch,
            losses: u32::try_from(lost).expect("few"),
            attempts: task.attempts,
            dependencies: Vec::new(),
            workflow: None,
        };
        self.history.show(END, shown);
    }

    /// A worker to whom nothing happens, or one that was told to go on.
    fn healthy(&mut self, task: &mut Going<'_>) -> (String, u32) {
        let number = self.random.random_range(1..5);
        task.forced.take().unwrap_or_else(|| (format!("w{number}"), 1))
    }

    /// A worker of its own, to whom something will happen.
    fn victim(&mut self) -> String {
        self.workers += 1;
        format!("x{}", self.workers)
    }

    fn say(&mut self, at: u64, by: (&str, u32), task: &Going<'_>, ev: Ev, outcome: Option<Kind>) {
        let effect = effect(by.0, task.name, task.epoch, ev, outcome);
        self.history.effect(at, Effect { pid: by.1, ..effect });
    }

    /// Starts and ends, without saying what became of the outcome; the time of the end.
    fn run(&mut self, by: (&str, u32), task: &Going<'_>) -> u64 {
        let end = task.now + self.random.random_range(1..200);
        self.say(task.now, by, task, Ev::Start, None);
        self.say(end, by, task, Ev::End, None);
        end
    }

    fn lease(&mut self, task: &mut Going<'_>, fate: Fate) {
        match fate {
            Fate::CancelWaiting | Fate::CancelRunning if !task.is_acked => {}
            Fate::CancelWaiting => self.cancel(task, task.now),
            Fate::Released => task.epoch += 1,
            _ => {
                task.epoch += 1;
                self.granted(task, fate);
            }
        }
    }

    fn granted(&mut self, task: &mut Going<'_>, fate: Fate) {
        match fate {
            Fate::Success => self.commits(task, Kind::Success, Ev::CommitOk),
            Fate::SuccessUnknown => self.commits(task, Kind::Success, Ev::CommitUnknown),
            Fate::SuccessRefused => self.commits(task, Kind::Success, Ev::CommitRefused),
            Fate::Fail => self.commits(task, Kind::Fail, Ev::CommitOk),
            Fate::Retry => self.commits(task, Kind::Retry, Ev::CommitOk),
            Fate::RetryUnknown => self.commits(task, Kind::Retry, Ev::CommitUnknown),
            Fate::SuccessKilled => {
                self.killed(task, true);
                (task.charged, task.end) = (task.charged + 1, Some(Status::Success));
            }
            Fate::Killed => {
                self.killed(task, false);
                task.note("WORKER_LOST");
            }
            Fate::KilledAfterEnd => {
                self.killed(task, true);
                task.note("WORKER_LOST");
            }
            Fate::GivenUp => {
                self.killed(task, false);
                task.note("WORKER_LOST");
                task.end = Some(Status::Failed);
            }
            Fate::Paused => self.paused(task),
            Fate::StartedLate => self.started_late(task),
            Fate::StartUnheard => self.start_unheard(task),
            Fate::Timeout => self.overdue(task),
            Fate::LostUnseen => self.lost_unseen(task),
            Fate::DiedByItself => self.died_by_itself(task),
            Fate::CancelRunning => self.cancelled_while_it_ran(task),
            Fate::Released | Fate::CancelWaiting => {}
        }
    }

    /// Runs, and the outcome counts, whatever the worker hears.
    fn commits(&mut self, task: &mut Going<'_>, kind: Kind, heard: Ev) {
        let (worker, pid) = self.healthy(task);
        let end = self.run((&worker, pid), task);
        let answered = end + self.random.random_range(1..50);
        self.say(answered, (&worker, pid), task, heard, Some(kind));
        task.now = end + 50;
        match kind {
            Kind::Success => {
                (task.charged, task.end) = (task.charged + 1, Some(Status::Success));
            }
            Kind::Retry => task.note("TOLD_TO"),
            Kind::Fail => {
                task.note("HOPELESS");
                task.end = Some(Status::Failed);
            }
        }
    }

    fn killed(&mut self, task: &mut Going<'_>, ends: bool) {
        let worker = self.victim();
        let mut at = task.now;
        if ends {
            at = self.run((&worker, 1), task);
        } else {
            self.say(at, (&worker, 1), task, Ev::Start, None);
        }
        at += self.random.random_range(0..100);
        self.history.fault(at, at, FaultKind::Kill, &worker);
        task.now = at + TTL + self.random.random_range(0..500);
    }

    /// Long after it has said that it started.
    fn paused(&mut self, task: &mut Going<'_>) {
        let worker = self.victim();
        let from = task.now + TTL + self.random.random_range(10..500);
        let to = from + TTL + self.random.random_range(10..4_000);
        self.say(task.now, (&worker, 1), task, Ev::Start, None);
        self.history.fault(from, to, FaultKind::Pause, &worker);
        self.say(to + 1, (&worker, 1), task, Ev::End, None);
        self.say(to + 9, (&worker, 1), task, Ev::CommitRefused, Some(Kind::Success));
        task.note("WORKER_LOST");
        task.now = from + TTL;
    }

    fn started_late(&mut self, task: &mut Going<'_>) {
        let worker = self.victim();
        let to = task.now + TTL + self.random.random_range(10..1_000);
        self.history.fault(task.now, to, FaultKind::Pause, &worker);
        self.say(to + 1, (&worker, 1), task, Ev::Start, None);
        self.say(to + 5, (&worker, 1), task, Ev::End, None);
        self.say(to + 9, (&worker, 1), task, Ev::CommitRefused, Some(Kind::Success));
        // A server that was started again does not know that it was not started.
        if self.random.random() {
            task.note("WORKER_LOST");
        }
        task.now += TTL;
    }

    fn start_unheard(&mut self, task: &mut Going<'_>) {
        let worker = self.victim();
        let from = task.now + self.random.random_range(0..TTL / 3);
        let to = from + TTL + self.random.random_range(10..1_000);
        self.say(task.now, (&worker, 1), task, Ev::Start, None);
        self.history.fault(from, to, FaultKind::Pause, &worker);
        self.say(to + 5, (&worker, 1), task, Ev::End, None);
        self.say(to + 9, (&worker, 1), task, Ev::CommitRefused, Some(Kind::Success));
        task.now = from + TTL;
    }

    fn overdue(&mut self, task: &mut Going<'_>) {
        let (worker, pid) = self.healthy(task);
        let late = task.now + self.random.random_range(500..3_000);
        self.say(task.now, (&worker, pid), task, Ev::Start, None);
        self.say(late, (&worker, pid), task, Ev::End, None);
        self.say(late + 1, (&worker, pid), task, Ev::CommitRefused, Some(Kind::Success));
        task.note("TIMEOUT");
        task.now += 500;
    }

    fn lost_unseen(&mut self, task: &mut Going<'_>) {
        let worker = self.victim();
        self.history.fault(task.now, task.now, FaultKind::Kill, &worker);
        task.note("WORKER_LOST");
        task.now += TTL;
        task.forced = Some(("w1".to_owned(), 1));
    }

    fn died_by_itself(&mut self, task: &mut Going<'_>) {
        let worker = self.victim();
        self.say(task.now, (&worker, 1), task, Ev::Start, None);
        task.note("WORKER_LOST");
        task.now += TTL;
        task.forced = Some((worker, 2));
    }

    fn cancelled_while_it_ran(&mut self, task: &mut Going<'_>) {
        let (worker, pid) = self.healthy(task);
        let end = self.run((&worker, pid), task);
        self.say(end + 1, (&worker, pid), task, Ev::CommitRefused, Some(Kind::Success));
        self.cancel(task, task.now + 1);
        task.epoch += 1;
    }

    fn cancel(&mut self, task: &mut Going<'_>, at: u64) {
        let answer = if self.random.random_bool(0.8) { Phase::Ok } else { Phase::Info };
        let about = About { key: task.name, task: task.name, ..About::default() };
        self.history.call(at, Verb::Cancel, Some(answer), &about);
        task.end = Some(Status::Cancelled);
    }
}
