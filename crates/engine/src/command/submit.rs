//! Submit tasks.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::{CHILDREN, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::{self, Submitted};
use duly_core::settings::Settings;
use duly_core::state::Status;
use duly_core::submit::Spec;
use duly_core::task::{Idempotency, NewTask, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::{Links, Membership};
use tokio::sync::oneshot;

use super::payloads::BadPayload;
use super::tenants::Denied;
use crate::engine::Engine;
use crate::submitter::{StoredTasks, Submission};

/// A task that was accepted.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The task as committed.
    pub task: Task,
    /// Whether the idempotency key led to an earlier task.
    pub replayed: bool,
    /// Whether no live worker has a handler for its type.
    pub unserved: bool,
}

/// Why one item of a submit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is due later than any task may be.
    #[error("runAt lies more than 400 days ahead")]
    TooFarAhead,
    /// The idempotency key was used with another body before.
    #[error("this idempotency key was used within the last 24 hours with a different body")]
    KeyReused,
    /// The tenant may not have its payload.
    #[error(transparent)]
    Payload(#[from] BadPayload),
    /// The task would open one lane too many.
    #[error("the installation already holds the largest number of distinct queue and type pairs")]
    LaneLimit,
    /// It depends on a task that is not there.
    #[error("depends on task {parent}, which does not exist")]
    UnknownParent {
        /// The parent.
        parent: TaskId,
    },
    /// A task that it depends on has too many children already.
    #[error("task {parent} has {CHILDREN} children, and may have no more")]
    TooManyChildren {
        /// The parent.
        parent: TaskId,
    },
    /// The workflow that it is to join has ended or was cancelled.
    #[error("the workflow has ended or was cancelled")]
    WorkflowEnded,
    /// The workflow that it is to join is not there.
    #[error("there is no such workflow")]
    UnknownWorkflow,
    /// The store stored other items of the same submit and then failed.
    #[error("{reason}")]
    NotStored {
        /// Why, and what to do.
        reason: String,
    },
    /// It was submitted before, and the earlier task cannot be read.
    #[error("{reason}")]
    Unreadable {
        /// Why, and what to do.
        reason: String,
    },
}

/// Why no item of a submit was stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too many tasks wait for the store; retry in a moment.
    #[error("too many submissions are waiting for the store")]
    Overloaded,
    /// The tenant may not submit now.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The engine is shutting down.
    #[error("the server is shutting down")]
    Closed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Arc<store::Error>),
}

type Answer = Result<Accepted, Refused>;

/// A call on its way to the store.
type Call = oneshot::Receiver<Result<StoredTasks, Arc<store::Error>>>;

impl Engine {
    /// Stores tasks and returns once they are durable; one answer per spec, in order.
    ///
    /// A large submit is stored in several commits. If one fails after another succeeded, the
    /// answers to its items are errors. The call fails as a whole only if nothing was stored.
    pub async fn submit(
        &self,
        tenant: &TenantName,
        specs: Vec<Spec>,
    ) -> Result<Vec<Answer>, Error> {
        let own = specs.iter().filter(|spec| !spec.task_type.is_reserved()).count();
        self.admit_tasks(tenant, own).await.map_err(Arc::new)??;
        let now = self.store().now().await.map_err(Arc::new)?;
        let defaults = self.defaults_of(tenant).await.map_err(Arc::new)?;
        let rules = self.payload_rules(tenant).await.map_err(Arc::new)?;
        let mut answers: Vec<Option<Answer>> = specs.iter().map(|_| None).collect();
        let mut tasks = Vec::with_capacity(specs.len());
        let mut positions = Vec::with_capacity(specs.len());
        let random = self.draw(2 * answers.len());
        let random = random.as_chunks().0.iter().copied();
        for (position, (spec, random)) in specs.into_iter().zip(random).enumerate() {
            if spec.is_too_far(now) {
                answers[position] = Some(Err(Refused::TooFarAhead));
            } else if let Err(bad) = rules.check(&spec.payload)
                && !spec.task_type.is_reserved()
            {
                answers[position] = Some(Err(bad.into()));
            } else {
                positions.push(position);
                tasks.push(self.new_task(tenant, spec, &defaults, now, random));
            }
        }
        let mut positions = positions.into_iter();
        let (mut stored, mut failure) = (false, None);
        for (count, call) in self.send(tasks)? {
            let positions = positions.by_ref().take(count);
            match call.await.map_err(|_| Error::Closed).and_then(|answer| Ok(answer?)) {
                Ok((tasks, settled)) => {
                    stored = true;
                    for ((task, outcome), position) in tasks.into_iter().zip(settled).zip(positions)
                    {
                        answers[position] = Some(self.answer(tenant, task, outcome).await);
                    }
                }
                Err(error) => {
                    let reason = error.to_string();
                    for position in positions {
                        answers[position] =
                            Some(Err(Refused::NotStored { reason: reason.clone() }));
                    }
                    failure = Some(error);
                }
            }
        }
        match failure {
            Some(error) if !stored => Err(error),
            _ => Ok(answers
                .into_iter()
                .map(|answer| answer.expect("every spec was answered"))
                .collect()),
        }
    }

    /// Stores one task of the system's own, which does what a user has ordered: by itself, so that the
    /// store knows the author.
    pub(crate) async fn submit_system(
        &self,
        tenant: &TenantName,
        spec: Spec,
    ) -> Result<Answer, Error> {
        let _open = self.submissions().ok_or(Error::Closed)?;
        self.admit_tasks(tenant, 0).await.map_err(Arc::new)??;
        let now = self.store().now().await.map_err(Arc::new)?;
        let defaults = self.defaults_of(tenant).await.map_err(Arc::new)?;
        let random = self.draw(2);
        let task = self.new_task(tenant, spec, &defaults, now, [random[0], random[1]]);
        let batch = store::Submit { tasks: vec![task.clone()], offer: None };
        let outcome = self.store().submit(batch).await.map_err(Arc::new)?.pop();
        let outcome = outcome.expect("one answer for one task");
        Ok(self.answer(tenant, task, outcome).await)
    }

    pub(super) fn draw(&self, count: usize) -> Vec<u64> {
        let mut numbers = vec![0; count];
        self.random().fill(&mut numbers);
        numbers
    }

    fn new_task(
        &self,
        tenant: &TenantName,
        spec: Spec,
        defaults: &Settings,
        now: Timestamp,
        [random, entropy]: [u64; 2],
    ) -> NewTask {
        let run_at = spec.run_at(now, entropy);
        let parent = spec.dependencies.iter().map(|it| it.parent).max();
        let id = self.mint_after(parent, run_at, random);
        let join = |workflow| Membership { id: workflow, key: id.to_string() };
        let links = Links {
            dependencies: spec.dependencies.clone(),
            workflow: spec.workflow.map(join),
            render: spec.render,
        };
        new_task(tenant, spec, defaults, Minted { id, now, entropy, links })
    }

    /// An id whose time is `due`, unless that would put the task before a parent: ids ascend along
    /// edges, so that rows which are locked by id are locked parents first.
    pub(super) fn mint_after(&self, parent: Option<TaskId>, due: Timestamp, random: u64) -> TaskId {
        let ordinal = self.next_ordinal();
        let id = TaskId::mint(due, ordinal, random);
        match parent.filter(|parent| *parent >= id) {
            Some(parent) => TaskId::mint(just_after(parent), ordinal, random),
            None => id,
        }
    }

    /// Queues the tasks for the submitter, in chunks that fit into one store call.
    fn send(&self, tasks: Vec<NewTask>) -> Result<Vec<(usize, Call)>, Error> {
        let submissions = self.submissions().ok_or(Error::Closed)?;
        if !self.backlog().try_add(&tasks) {
            return Err(Error::Overloaded);
        }
        let mut calls = Vec::new();
        for tasks in chunks(tasks) {
            let count = tasks.len();
            let (reply, answer) = oneshot::channel();
            submissions.send(Submission { tasks, reply }).map_err(|_| Error::Closed)?;
            calls.push((count, answer));
        }
        Ok(calls)
    }

    async fn answer(&self, tenant: &TenantName, task: NewTask, outcome: Submitted) -> Answer {
        let unserved = !self.served_types().contains(&task.lane.task_type);
        let accepted = |task, replayed| Ok(Accepted { task, replayed, unserved });
        match outcome {
            Submitted::Stored { at } => accepted(stored(task, at, None), false),
            Submitted::HandedOff { epoch, granted_at } => {
                accepted(stored(task, granted_at, Some(epoch)), false)
            }
            Submitted::KeyReused => Err(Refused::KeyReused),
            Submitted::LaneLimit => Err(Refused::LaneLimit),
            Submitted::Blocked { at } => {
                // A parent may have ended before, and not as the task asks.
                self.cascade_soon();
                let task = Task { status: Status::Blocked, ..stored(task, at, None) };
                accepted(task, false)
            }
            Submitted::UnknownParent { parent } => Err(Refused::UnknownParent { parent }),
            Submitted::TooManyChildren { parent } => Err(Refused::TooManyChildren { parent }),
            Submitted::WorkflowEnded => Err(Refused::WorkflowEnded),
            Submitted::UnknownWorkflow => Err(Refused::UnknownWorkflow),
            Submitted::Replayed { id } => {
                match self.get(tenant, id).await {
                    Ok(Some(first)) => accepted(first, true),
                    // The first task was deleted and its key is still kept: there is no task to
                    // return.
                    Ok(None) => Err(Refused::KeyReused),
                    Err(error) => Err(Refused::Unreadable { reason: error.to_string() }),
                }
            }
        }
    }
}

fn chunks(tasks: Vec<NewTask>) -> Vec<Vec<NewTask>> {
    let (mut chunks, mut bytes) = (Vec::new(), usize::MAX);
    for task in tasks {
        let full = chunks.last().is_none_or(|chunk: &Vec<NewTask>| chunk.len() == STORE_BATCH);
        bytes = bytes.saturating_add(task.payload.len());
        if full || bytes > STORE_BATCH_BYTES {
            bytes = task.payload.len();
            chunks.push(Vec::new());
        }
        chunks.last_mut().expect("just made").push(task);
    }
    chunks
}

/// The first instant whose ids all come after this one.
pub(crate) fn just_after(id: TaskId) -> Timestamp {
    id.first_due().plus(Duration::from_millis(1))
}

/// What a task gets beside what was asked for.
pub(crate) struct Minted {
    pub(crate) id: TaskId,
    pub(crate) now: Timestamp,
    pub(crate) entropy: u64,
    pub(crate) links: Links,
}

/// A task that can be stored.
pub(crate) fn new_task(
    tenant: &TenantName,
    spec: Spec,
    defaults: &Settings,
    minted: Minted,
) -> NewTask {
    let Minted { id, now, entropy, links } = minted;
    let body = spec.idempotency_key.as_ref().map(|_| spec.body_hash());
    let (delay, run_at) = (spec.delay(now, entropy), spec.run_at(now, entropy));
    let key = spec.idempotency_key.zip(body);
    let mut labels = spec.labels;
    if let Some(trace) = spec.trace {
        trace.mark(&mut labels);
    }
    NewTask {
        id,
        lane: Lane { tenant: tenant.clone(), queue: spec.queue, task_type: spec.task_type },
        priority: spec.priority,
        run_at,
        delay,
        retries: spec.retries.unwrap_or(defaults.retries),
        back_off: spec.back_off.or(defaults.back_off),
        timeout: spec.timeout,
        labels,
        payload: spec.payload,
        idempotency: key.map(|(key, body)| Idempotency { key, body }),
        links: (!links.is_empty()).then(|| Arc::new(links)),
    }
}

/// The task as the commit left it, without reading it back.
fn stored(task: NewTask, at: Timestamp, granted: Option<u32>) -> Task {
    Task {
        id: task.id,
        status: if granted.is_some() { Status::Running } else { Status::Pending },
        priority: task.priority,
        run_at: task.due_at(at),
        created_at: at,
        lane: task.lane,
        granted_at: granted.map(|_| at),
        started_at: None,
        finished_at: None,
        run: 1,
        charged: 0,
        retries: task.retries,
        back_off: task.back_off,
        epoch: granted.unwrap_or(0),
        losses: 0,
        timeout: task.timeout,
        session: None,
        worker: None,
        labels: task.labels,
        payload: task.payload,
        result: None,
        error: None,
        progress: None,
        links: task.links,
    }
}
