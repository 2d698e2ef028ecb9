//! The call that a step is, in view of what is known.

use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::{BackOff, Jitter, Strategy};
use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::LOG_BYTES;
use duly_core::log::LogChunk;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    CancelTasks, Cutoffs, DeleteTasks, EditTask, Exchange, Extend, ExtendLeases, Heartbeat, Home,
    OpenSession, PauseQueue, PutSettings, Reap, Replay, ReplayTasks, Report, ReportItem,
    RetryTasks, Submit, Sweep, TaskChange,
};
use duly_core::progress::Progress;
use duly_core::settings::{Retention, Settings};
use duly_core::state::Status;
use duly_core::submit::Start;
use duly_core::task::{Failure, Idempotency, NewTask, Priority, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::{Condition, Dependency, Links, Membership, NewWorkflow};

use crate::call::Call;
use crate::events::sink;
use crate::known::{Known, pick, tenant};
use crate::step::{
    ClaimStep, EditStep, FinishStep, How, LogStep, OpenStep, ReplayStep, ReportStep, Step,
    TaskStep, What, Which, Who, WorkflowOrder,
};

/// Ids beyond these are not minted: tasks are to meet.
const TASKS: usize = 7;
const TYPES: [&str; 3] = ["mail", "pdf", "video"];
const ERRORS: [&str; 4] = ["order 1 is gone", "order 2 is gone", "out of paper", "no idea"];

pub(crate) fn queue(other: bool) -> QueueName {
    if other { QueueName::new("bulk").unwrap() } else { QueueName::default_queue() }
}

pub(crate) fn type_name(number: u8) -> TypeName {
    TypeName::new(TYPES[usize::from(number) % TYPES.len()]).unwrap()
}

pub(crate) fn failure(number: u8) -> Failure {
    Failure::new("BROKEN", ERRORS[usize::from(number) % ERRORS.len()])
}

impl Known {
    /// The call that a step is now; nothing if it cannot be any.
    pub(crate) fn call(&mut self, step: Step) -> Option<Call> {
        if self.needs_worker(&step) {
            return Some(self.open(OpenStep::usual(!self.ordinal.is_multiple_of(3))));
        }
        Some(match step {
            Step::Submit { tasks, offer } => self.submit(&tasks, offer),
            Step::Open(step) => self.open(step),
            Step::Heartbeat { who, received, unstarted } => self.beat(who, &received, &unstarted),
            Step::End { who, why } => Call::End { session: self.who(who), why },
            Step::Exchange { who, finishes, claim } => self.exchange(who, &finishes, claim),
            Step::Extend { who, leases } => self.extend(who, &leases),
            Step::Report { who, items } => self.report(who, &items),
            Step::Reap { silence, entropy } => {
                let before = self.now.millis() - i64::try_from(silence.as_millis()).unwrap();
                // Half of the calls with no patience at all take back what was just granted.
                let eager = i64::from(silence.is_zero() && entropy % 2 == 0);
                let unacknowledged_before = Timestamp::from_millis(before + eager);
                Call::Reap(Reap { unacknowledged_before, entropy })
            }
            Step::Cancel { tasks, foreign } => {
                let (tenant, tasks) = self.orders(&tasks, foreign, |it| !it.status.is_terminal());
                Call::Cancel(CancelTasks { tenant, tasks, reason: "enough".to_owned() })
            }
            Step::Replay { tasks, payload, foreign } => self.replay(&tasks, payload, foreign),
            Step::Retry { tasks, foreign } => {
                let waits = |it: &Task| it.status == Status::Pending && it.charged > 0;
                let (tenant, tasks) = self.orders(&tasks, foreign, waits);
                Call::Retry(RetryTasks { tenant, tasks })
            }
            Step::Delete { tasks, foreign } => {
                let (tenant, tasks) = self.orders(&tasks, foreign, |it| it.status.is_terminal());
                Call::Delete(DeleteTasks { tenant, tasks, before: None })
            }
            Step::Edit(step) => self.edit(step),
            Step::Pause { queue: other, tenant: foreign, pause: true } => {
                let note = format!("at {}", self.now);
                Call::Pause(PauseQueue { tenant: tenant(foreign), queue: queue(other), note })
            }
            Step::Pause { queue: other, tenant: foreign, pause: false } => {
                Call::Resume(tenant(foreign), queue(other))
            }
            Step::Sweep { ago, own, after } => {
                let cutoffs = |[success, failed, cancelled]: [Option<Duration>; 3]| {
                    Cutoffs::of(Retention { success, failed, cancelled }, self.now)
                };
                let own = own.map(|own| (tenant(true), cutoffs(own)));
                let (cutoffs, tenants) = (cutoffs(ago), Arc::new(own.into_iter().collect()));
                let after = after.map(|what| self.what(what));
                Call::Sweep(Sweep { cutoffs, tenants, after })
            }
            Step::Settings { loss_limit, behind } => {
                let expected = self.version.saturating_sub(behind.into());
                let settings = Settings { loss_limit, ..Settings::default() };
                Call::Settings(PutSettings { expected, settings, comment: None })
            }
            step @ (Step::Workflow { .. }
            | Step::OrderWorkflow { .. }
            | Step::ReplayDownstream { .. }
            | Step::Cascade) => return self.about_workflows(step),
            Step::Listen { deleted } => Call::Listen(sink(deleted)),
            Step::Schedule(step) => self.about_schedules(step),
            Step::Read(read) => self.read(read),
            Step::Again { back } => pick(&self.calls, back)?.clone(),
            Step::Advance(_) | Step::Crash => return None,
        })
    }

    fn about_workflows(&mut self, step: Step) -> Option<Call> {
        Some(match step {
            Step::Workflow { tasks, fail_fast, key } => self.workflow(&tasks, fail_fast, key),
            Step::OrderWorkflow { back, order, foreign } => {
                let (id, other) = *pick(&self.workflows_for(order), back)?;
                let owner = tenant(other != foreign);
                match order {
                    WorkflowOrder::Cancel => Call::CancelWorkflow(owner, id),
                    WorkflowOrder::Retry => Call::RetryWorkflow(owner, id),
                    WorkflowOrder::Graph => Call::Graph(owner, id),
                }
            }
            Step::ReplayDownstream { what, foreign } => {
                let (owner, tasks) = self.orders(&[what], foreign, |it| it.status.is_terminal());
                let run = self.state.get(&tasks[0]).map_or(1, |task| task.run);
                Call::ReplayDownstream(owner, tasks[0], run)
            }
            Step::Cascade => Call::Cascade,
            _ => return None,
        })
    }

    fn submit(&mut self, tasks: &[TaskStep], offer: Option<(Who, ClaimStep)>) -> Call {
        let offer = offer.map(|(who, claim)| self.claim(self.who(who), claim));
        let tasks = tasks.iter().map(|task| self.task(*task)).collect();
        Call::Submit(Submit { tasks, offer })
    }

    fn task(&mut self, step: TaskStep) -> NewTask {
        let run_at = self.now.plus(step.delay);
        let full = self.tasks.len() >= TASKS;
        let again = step.again.or(full.then_some(What::Known(step.task_type)));
        let again = again.filter(|_| !self.tasks.is_empty()).map(|what| self.what(what));
        let id = again.unwrap_or_else(|| TaskId::mint(run_at, self.next_ordinal(), 7));
        let links = self.links(id, step);
        let (tenant, queue) = (tenant(step.tenant), queue(step.queue));
        let idempotency =
            step.key.map(|(key, body)| Idempotency { key: format!("key-{key}"), body: [body; 32] });
        NewTask {
            id,
            lane: Lane { tenant, queue, task_type: type_name(step.task_type) },
            priority: Priority::new(step.priority).unwrap(),
            run_at,
            delay: (step.priority.is_multiple_of(2)).then_some(step.delay),
            retries: step.retries,
            back_off: back_off(step.back_off),
            timeout: step.timeout,
            labels: [("n".to_owned(), step.task_type.to_string())].into(),
            payload: payload(step.large),
            idempotency,
            links,
        }
    }

    /// The workflows that an order means: a retry those with a failed task, if there are such.
    fn workflows_for(&self, order: WorkflowOrder) -> Vec<(WorkflowId, bool)> {
        let failed = |id: WorkflowId| {
            self.state.values().any(|task| {
                let workflow = task.links.as_ref().and_then(|links| links.workflow.as_ref());
                task.status == Status::Failed && workflow.is_some_and(|it| it.id == id)
            })
        };
        let retry = matches!(order, WorkflowOrder::Retry);
        let fit: Vec<_> = self.workflows.iter().copied().filter(|(id, _)| failed(*id)).collect();
        if retry && !fit.is_empty() { fit } else { self.workflows.clone() }
    }

    fn links(&self, id: TaskId, step: TaskStep) -> Option<Arc<Links>> {
        let mut dependencies: Vec<Dependency> = Vec::new();
        for (what, on) in step.parents.into_iter().flatten() {
            let parent = self.what(what);
            // Parents are older than their children, or there could be circles.
            if parent < id && dependencies.iter().all(|it| it.parent != parent) {
                dependencies.push(Dependency { parent, on: Condition::ALL[usize::from(on)] });
            }
        }
        dependencies.sort_unstable();
        let joins = step.joins.and_then(|back| pick(&self.workflows, back));
        let workflow = joins.map(|(workflow, _)| Membership { id: *workflow, key: id.to_string() });
        let links = Links { dependencies, workflow, render: step.large };
        (!links.is_empty()).then(|| Arc::new(links))
    }

    /// Tasks of one tenant, each of which depends on some of those before it.
    fn workflow(
        &mut self,
        steps: &[(TaskStep, u8)],
        fail_fast: bool,
        key: Option<(u8, u8)>,
    ) -> Call {
        let id = TaskId::mint(self.now, self.next_ordinal(), 7);
        let id = WorkflowId::from_bytes(*id.as_bytes());
        let other = steps[0].0.tenant;
        let mut tasks: Vec<NewTask> = Vec::new();
        for (number, (step, bits)) in steps.iter().enumerate() {
            let bare = TaskStep { again: None, key: None, joins: None, tenant: other, ..*step };
            let mut task = self.task(TaskStep { parents: [None; 2], ..bare });
            task.id = TaskId::mint(self.now.plus(task_window()), self.next_ordinal(), 7);
            let on = Condition::ALL[usize::from(bits >> 4) % 3];
            let chosen = tasks.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
            let mut dependencies: Vec<_> =
                chosen.map(|(_, task)| Dependency { parent: task.id, on }).collect();
            let outside = self.links(task.id, bare).map(|links| links.dependencies.clone());
            dependencies.extend(outside.into_iter().flatten());
            dependencies.sort_unstable();
            let workflow = Some(Membership { id, key: format!("task-{number}") });
            task.links = Some(Arc::new(Links { dependencies, workflow, render: false }));
            tasks.push(task);
        }
        let idempotency =
            key.map(|(key, body)| Idempotency { key: format!("key-{key}"), body: [body; 32] });
        Call::Workflow(NewWorkflow {
            id,
            tenant: tenant(other),
            name: "flow".to_owned(),
            labels: [("n".to_owned(), "1".to_owned())].into(),
            fail_fast,
            idempotency,
            tasks,
        })
    }

    /// Tasks that come with an outcome of this task.
    fn then(&mut self, parent: TaskId, count: u8) -> Option<Arc<[NewTask]>> {
        let task = self.state.get(&parent)?.clone();
        let mut tasks: Vec<NewTask> = Vec::new();
        for number in 0..count {
            let id = TaskId::mint(self.now.plus(task_window()), self.next_ordinal(), 7);
            let workflow = task.links.as_ref().and_then(|links| links.workflow.as_ref());
            let workflow =
                workflow.map(|it| Membership { id: it.id, key: format!("then-{number}") });
            let before = tasks.last().map_or(parent, |task| task.id);
            let dependencies = vec![Dependency { parent: before, on: Condition::Success }];
            let links = Links { dependencies, workflow, render: false };
            tasks.push(NewTask {
                id,
                lane: task.lane.clone(),
                priority: task.priority,
                run_at: self.now,
                delay: Some(Duration::ZERO),
                retries: 1,
                back_off: task.back_off,
                timeout: None,
                labels: task.labels.clone(),
                payload: payload(false),
                idempotency: None,
                links: Some(Arc::new(links)),
            });
        }
        Some(Arc::from(tasks))
    }

    fn open(&mut self, step: OpenStep) -> Call {
        let again = step.again.and_then(|who| self.worker(who)).map(|worker| worker.id);
        let ordinal = self.next_ordinal();
        let types = if step.all_types { TYPES.len() } else { 1 };
        Call::Open(OpenSession {
            id: again.unwrap_or_else(|| SessionId::mint(self.now, ordinal.into())),
            name: format!("worker-{ordinal}"),
            tenant: step.bound.map(tenant),
            types: TYPES[..types].iter().map(|name| TypeName::new(name).unwrap()).collect(),
            queues: step.one_queue.then(|| queue(false)).into_iter().collect(),
            home: if step.remote { Home::Remote } else { Home::Local },
            owner: None,
        })
    }

    fn beat(&self, who: Who, received: &[u8], unstarted: &[Which]) -> Call {
        let session = self.who(who);
        let last = self.worker(who).map_or(0, |worker| worker.sequence);
        let received = received.iter().map(|back| last.saturating_sub(u64::from(*back)));
        let unstarted = unstarted.iter().map(|which| self.which(session, *which).0);
        Call::Heartbeat(Heartbeat {
            session,
            received: received.collect(),
            unstarted: unstarted.collect(),
        })
    }

    fn exchange(&mut self, who: Who, finishes: &[FinishStep], claim: Option<ClaimStep>) -> Call {
        let session = self.who(who);
        let mut made: Vec<Finish> = Vec::new();
        for step in finishes {
            let (task, epoch) = self.which(session, step.which);
            let outcome = outcome(step.how, u8::try_from(epoch % 4).unwrap());
            let progress = step.log.map(|log| Progress::new(log.start.into(), None));
            let adds = step.then > 0 && matches!(outcome, Outcome::Success { .. });
            let adds = adds && self.tasks.len() < 2 * TASKS;
            let then = if adds { self.then(task, step.then) } else { None };
            let finish = Finish::new(task, epoch, outcome);
            made.push(Finish { progress, log: step.log.map(piece), then, ..finish });
        }
        let claim = claim.map(|claim| self.claim(session, claim));
        Call::Exchange(Exchange { session, finishes: made, claim })
    }

    fn extend(&self, who: Who, leases: &[(Which, Duration)]) -> Call {
        let session = self.who(who);
        let one = |(which, by): &(Which, Duration)| {
            let (task, epoch) = self.which(session, *which);
            Extend { task, epoch, by: *by }
        };
        Call::Extend(ExtendLeases { session, leases: leases.iter().map(one).collect() })
    }

    fn report(&self, who: Who, items: &[ReportStep]) -> Call {
        let session = self.who(who);
        let one = |step: &ReportStep| {
            let (task, epoch) = self.which(session, step.which);
            let progress = step.progress.map(|(done, noted)| Progress {
                checkpoint: noted.then(|| done.to_string().into()),
                ..Progress::new(done.into(), (done > 2).then_some(4)).with_message("at it")
            });
            ReportItem { task, epoch, progress, log: step.log.map(piece) }
        };
        Call::Report(Report { session, items: items.iter().map(one).collect() })
    }

    /// The tenant of the first task, or the other one.
    fn orders(
        &self,
        tasks: &[What],
        foreign: bool,
        fits: impl Fn(&Task) -> bool,
    ) -> (TenantName, Vec<TaskId>) {
        let tasks: Vec<_> = tasks.iter().map(|what| self.what_fits(*what, &fits)).collect();
        let owner = self.state.get(&tasks[0]).map(|task| task.lane.tenant == tenant(true));
        (tenant(owner.unwrap_or(false) != foreign), tasks)
    }

    fn replay(&self, tasks: &[ReplayStep], large: Option<bool>, foreign: bool) -> Call {
        let whats: Vec<_> = tasks.iter().map(|step| step.what).collect();
        let (tenant, ids) = self.orders(&whats, foreign, |task| task.status.is_terminal());
        let one = |(task, step): (TaskId, &ReplayStep)| {
            let run = self.state.get(&task).map_or(1, |task| task.run);
            let run = run.saturating_add_signed(step.ahead.into()).max(1);
            let at = |seconds: i8| self.now.millis() + i64::from(seconds) * 1000;
            Replay { task, run, run_at: step.run_at.map(|by| Timestamp::from_millis(at(by))) }
        };
        let tasks = ids.into_iter().zip(tasks).map(one).collect();
        Call::Replay(ReplayTasks { tenant, tasks, payload: large.map(payload) })
    }

    fn edit(&self, step: EditStep) -> Call {
        let waits = |task: &Task| task.status == Status::Pending;
        let (tenant, tasks) = self.orders(&[step.what], step.foreign, waits);
        let at = |seconds: i8| self.now.millis() + i64::from(seconds) * 1000;
        let change = TaskChange {
            payload: step.large.map(payload),
            priority: step.priority.and_then(Priority::new),
            start: step.run_at.map(|by| Start::At(Timestamp::from_millis(at(by)))),
            retries: step.retries,
            timeout: None,
            labels: None,
        };
        Call::Edit(EditTask { tenant, task: tasks[0], change })
    }
}

/// New tasks that depend on others are due after all that there is: ids grow along edges.
fn task_window() -> Duration {
    Duration::from_secs(60)
}

/// A piece of what every attempt logs. A large one is half of what is kept of a log.
fn piece(step: LogStep) -> LogChunk {
    let (each, text) =
        if step.large { (LOG_BYTES / 6, "0123456789abcdef") } else { (1, "äöü0123456789") };
    let start = text.ceil_char_boundary(step.start.into());
    let end = text.ceil_char_boundary(start + usize::from(step.length));
    let text = text[start..end].chars().map(|it| it.to_string().repeat(each));
    LogChunk { offset: (start * each) as u64, text: text.collect::<String>().into() }
}

fn outcome(how: How, number: u8) -> Outcome {
    let error = failure(number);
    match how {
        How::Success => Outcome::Success { result: Some(Arc::from("[1]")) },
        How::Retry { after, entropy } => Outcome::Retry { error, entropy, after },
        How::Fail => Outcome::Fail { error },
        How::Release => Outcome::Release,
    }
}

fn back_off(number: u8) -> BackOff {
    let base = Duration::from_secs(5);
    let fixed = BackOff { base, jitter: Jitter::None, ..BackOff::default() };
    match number {
        0 => BackOff::default(),
        1 => BackOff { strategy: Strategy::Fixed, ..fixed },
        2 => BackOff { jitter: Jitter::Equal, ..fixed },
        _ => BackOff { strategy: Strategy::None, ..fixed },
    }
}

/// Some stores keep large ones in another table.
fn payload(large: bool) -> Arc<str> {
    if large { format!("\"{}\"", "x".repeat(600)).into() } else { Arc::from("{}") }
}
