//! Group commit of submits: while one batch is stored the next one gathers. A single caller never
//! waits for a timer, and many callers share one sync.

use std::pin::Pin;
use std::sync::Arc;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Lease};
use duly_core::limits::{STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::{Error, Exchange, Result, Store, Submit, Submitted};
use duly_core::task::NewTask;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::backlog::Backlog;
use crate::cascade::CascadeBell;
use crate::claim_slot::{ClaimSlot, ClaimSlots, WaitingClaim};
use crate::deadlines::Deadlines;
use crate::lease_links::{deliver, prepare};
use crate::rates::{Counter, Rates};
use crate::task_waiters::TaskWaiters;

/// Tasks of one caller, within the limits of one store call.
pub(crate) struct Submission {
    pub(crate) tasks: Vec<NewTask>,
    pub(crate) reply: oneshot::Sender<std::result::Result<StoredTasks, Arc<Error>>>,
}

/// The tasks of a submission and the store's answer to each.
pub(crate) type StoredTasks = (Vec<NewTask>, Vec<Submitted>);

/// Submissions that wait to be stored, shared by all submitters.
pub(crate) struct Inbox(Mutex<Queue>);

struct Queue {
    submissions: mpsc::UnboundedReceiver<Submission>,
    /// A submission that did not fit into the last call.
    held_over: Option<Submission>,
}

impl Inbox {
    pub(crate) fn new(submissions: mpsc::UnboundedReceiver<Submission>) -> Self {
        Self(Mutex::new(Queue { submissions, held_over: None }))
    }

    /// Waits for a submission and adds further ones that fit into the same call; `None` when every
    /// sender is gone.
    async fn gather(&self) -> Option<Vec<Submission>> {
        let mut queue = self.0.lock().await;
        let first = match queue.held_over.take() {
            Some(submission) => submission,
            None => queue.submissions.recv().await?,
        };
        let (mut count, mut bytes) = (first.tasks.len(), size(&first));
        let mut group = vec![first];
        while let Ok(next) = queue.submissions.try_recv() {
            count += next.tasks.len();
            bytes += size(&next);
            if count > STORE_BATCH || bytes > STORE_BATCH_BYTES {
                queue.held_over = Some(next);
                break;
            }
            group.push(next);
        }
        Some(group)
    }
}

/// Stores submissions from the inbox. Several run at once if the store gains from it.
#[derive(Clone)]
pub(crate) struct Submitter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) claim_slots: ClaimSlots,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) task_waiters: Arc<TaskWaiters>,
    pub(crate) cascade_bell: Arc<CascadeBell>,
    pub(crate) shutdown: CancellationToken,
}

impl Submitter {
    /// Runs until every sender is gone.
    pub(crate) async fn run(self) {
        while let Some(group) = self.inbox.gather().await {
            self.run_once(group).await;
        }
    }

    /// Stores a group in one call; if the store reports a block, each caller's tasks separately.
    async fn run_once(&self, group: Vec<Submission>) {
        let mut tasks = Vec::with_capacity(group.iter().map(|one| one.tasks.len()).sum());
        let mut callers = Vec::with_capacity(group.len());
        for submission in group {
            callers.push((submission.tasks.len(), submission.reply));
            tasks.extend(submission.tasks);
        }
        let (answer, tasks) = self.store_and_hand_off(tasks).await;
        if callers.len() > 1 && matches!(answer, Err(Error::Blocked { .. })) {
            return self.store_separately(callers, tasks).await;
        }
        self.backlog.remove(&tasks);
        if let Ok(answers) = &answer {
            self.count(&tasks, answers);
        }
        reply(callers, tasks, answer);
    }

    /// Another transaction holds a lock that one of these callers needs. The other callers must
    /// not wait for it.
    async fn store_separately(&self, callers: Vec<Caller>, tasks: Vec<NewTask>) {
        let mut tasks = tasks.into_iter();
        let mut calls = JoinSet::new();
        for (count, reply) in callers {
            let tasks = tasks.by_ref().take(count).collect();
            calls.spawn(self.clone().store_one(Submission { tasks, reply }));
        }
        calls.join_all().await;
    }

    /// Boxed, since the call is recursive.
    fn store_one(self, one: Submission) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.run_once(vec![one]).await })
    }

    async fn store_and_hand_off(
        &self,
        tasks: Vec<NewTask>,
    ) -> (Result<Vec<Submitted>>, Vec<NewTask>) {
        // Only a task that is due now can use a claim.
        let due = tasks.iter().find(|task| task.is_immediate());
        let taken = due.and_then(|task| self.take_waiting_claim(task));
        let offer = taken.as_ref().map(|(_, waiting)| waiting.claim.clone());
        let answer = self.store.submit(Submit { tasks: tasks.clone(), offer }).await;
        let Some((claim_slot, waiting)) = taken else { return (answer, tasks) };
        let leases = answer.as_ref().map_or_else(|_| Vec::new(), |answers| leases(&tasks, answers));
        if leases.is_empty() {
            // Also after an error: if the store granted leases and its answer was lost, the
            // dispatcher gets the same leases for the same claim.
            claim_slot.put_back_for_dispatcher(waiting);
        } else {
            let session = waiting.claim.session;
            self.deadlines.add_leases(&leases);
            let finishes = match prepare(&*self.store, leases, None, &self.shutdown).await {
                Ok(prepared) => deliver(&claim_slot, waiting, prepared),
                Err(leases) => leases.iter().map(Lease::release).collect(),
            };
            if !finishes.is_empty() {
                self.give_back(session, finishes).await;
            }
        }
        (answer, tasks)
    }

    fn count(&self, tasks: &[NewTask], answers: &[Submitted]) {
        let stored = |answer: &Submitted| {
            matches!(
                answer,
                Submitted::Stored { .. } | Submitted::HandedOff { .. } | Submitted::Blocked { .. }
            )
        };
        let handed = |answer: &Submitted| matches!(answer, Submitted::HandedOff { .. });
        let those = |holds: fn(&Submitted) -> bool| {
            let pairs = tasks.iter().zip(answers).filter(move |(_, answer)| holds(answer));
            pairs.map(|(task, _)| &task.lane)
        };
        self.rates.count(Counter::Submitted, those(stored));
        self.rates.count(Counter::Started, those(handed));
    }

    fn take_waiting_claim(&self, task: &NewTask) -> Option<(Arc<ClaimSlot>, WaitingClaim)> {
        let slots = self.claim_slots.read();
        slots.iter().find_map(|slot| Some((Arc::clone(slot), slot.take_for_new(&task.lane)?)))
    }

    /// Ends leases that no worker got: it left while they were granted, or they cannot be rendered.
    async fn give_back(&self, session: SessionId, finishes: Vec<Finish>) {
        let tasks: Vec<_> = finishes.iter().map(|finish| finish.task).collect();
        let exchange = Exchange { session, finishes, claim: None };
        if let Err(error) = self.store.exchange(exchange).await {
            // The end of the session releases them.
            tracing::warn!(%error, leases = tasks.len(), "cannot give leases back");
        }
        self.task_waiters.notify_changed(tasks);
        self.cascade_bell.ring();
    }
}

fn size(submission: &Submission) -> usize {
    submission.tasks.iter().map(|task| task.payload.len()).sum()
}

fn leases(tasks: &[NewTask], answers: &[Submitted]) -> Vec<Lease> {
    let lease = |(task, answer): (&NewTask, &Submitted)| {
        let Submitted::HandedOff { epoch, granted_at } = answer else { return None };
        Some(task.handed_off(*epoch, *granted_at))
    };
    tasks.iter().zip(answers).filter_map(lease).collect()
}

type Caller = (usize, oneshot::Sender<std::result::Result<StoredTasks, Arc<Error>>>);

fn reply(callers: Vec<Caller>, tasks: Vec<NewTask>, answer: Result<Vec<Submitted>>) {
    match answer {
        Ok(answers) => {
            let (mut tasks, mut answers) = (tasks.into_iter(), answers.into_iter());
            for (count, caller) in callers {
                let own = tasks.by_ref().take(count).collect();
                drop(caller.send(Ok((own, answers.by_ref().take(count).collect()))));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for (_, caller) in callers {
                drop(caller.send(Err(Arc::clone(&error))));
            }
        }
    }
}
