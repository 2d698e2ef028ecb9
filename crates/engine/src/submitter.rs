//! Group commit of submits: while one batch is being stored the next gathers, so a lone caller
//! never waits for a timer and a crowd shares a sync.

use std::pin::Pin;
use std::sync::Arc;

use duly_core::lease::Lease;
use duly_core::limits::{STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::{Error, Exchange, Result, Store, Submit, Submitted};
use duly_core::task::NewTask;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::backlog::Backlog;
use crate::deadlines::Deadlines;
use crate::desk::{Desk, Desks, Waiting};
use crate::rates::{Rates, What};

/// A few tasks of one caller, within the limits of one store call.
pub(crate) struct Submission {
    pub(crate) tasks: Vec<NewTask>,
    pub(crate) reply: oneshot::Sender<std::result::Result<Settled, Arc<Error>>>,
}

/// The tasks of a submission and what became of each.
pub(crate) type Settled = (Vec<NewTask>, Vec<Submitted>);

/// What callers have sent and nobody has stored yet.
pub(crate) struct Inbox(Mutex<Queue>);

struct Queue {
    submissions: mpsc::UnboundedReceiver<Submission>,
    /// Did not fit into the last call.
    held_over: Option<Submission>,
}

impl Inbox {
    pub(crate) fn new(submissions: mpsc::UnboundedReceiver<Submission>) -> Self {
        Self(Mutex::new(Queue { submissions, held_over: None }))
    }

    /// Waits for a submission and takes along what else fits into one call; nothing when every
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

/// Stores what is in the inbox, beside others if the store has use for them.
#[derive(Clone)]
pub(crate) struct Submitter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) desks: Desks,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
}

impl Submitter {
    /// Works until every sender is gone.
    pub(crate) async fn run(self) {
        while let Some(group) = self.inbox.gather().await {
            self.run_once(group).await;
        }
    }

    /// Stores a group at once, if nothing is in the way.
    async fn run_once(&self, group: Vec<Submission>) {
        let mut tasks = Vec::with_capacity(group.iter().map(|one| one.tasks.len()).sum());
        let mut callers = Vec::with_capacity(group.len());
        for submission in group {
            callers.push((submission.tasks.len(), submission.reply));
            tasks.extend(submission.tasks);
        }
        let (answer, tasks) = self.store_and_hand_off(tasks).await;
        if callers.len() > 1 && matches!(answer, Err(Error::Blocked { .. })) {
            return self.run_apart(callers, tasks).await;
        }
        self.backlog.leave(&tasks);
        if let Ok(answers) = &answer {
            self.count(&tasks, answers);
        }
        reply(callers, tasks, answer);
    }

    /// Somebody holds what one of these callers needs; the others must not suffer for it.
    async fn run_apart(&self, callers: Vec<Caller>, tasks: Vec<NewTask>) {
        let mut tasks = tasks.into_iter();
        let mut alone = JoinSet::new();
        for (count, reply) in callers {
            let tasks = tasks.by_ref().take(count).collect();
            alone.spawn(self.clone().run_alone(Submission { tasks, reply }));
        }
        alone.join_all().await;
    }

    /// Boxed, since it ends where it came from.
    fn run_alone(self, one: Submission) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.run_once(vec![one]).await })
    }

    async fn store_and_hand_off(
        &self,
        tasks: Vec<NewTask>,
    ) -> (Result<Vec<Submitted>>, Vec<NewTask>) {
        // A claim is worth taking only for a task that could start now.
        let due = tasks.iter().find(|task| task.is_immediate());
        let seat = due.and_then(|task| self.free_seat(task));
        let offer = seat.as_ref().map(|(_, waiting)| waiting.claim.clone());
        let answer = self.store.submit(Submit { tasks: tasks.clone(), offer }).await;
        let Some((desk, waiting)) = seat else { return (answer, tasks) };
        let leases = answer.as_ref().map_or_else(|_| Vec::new(), |answers| leases(&tasks, answers));
        if leases.is_empty() {
            // Also after an error: should the store have granted something and its answer be
            // lost, the same claim gets the same leases from the dispatcher.
            desk.pass_on(waiting);
        } else {
            let session = waiting.claim.session;
            self.deadlines.expect(&leases);
            let orphaned = desk.serve(waiting, leases);
            if !orphaned.is_empty() {
                self.give_back(session, &orphaned).await;
            }
        }
        (answer, tasks)
    }

    fn count(&self, tasks: &[NewTask], answers: &[Submitted]) {
        let stored = |answer: &Submitted| {
            matches!(answer, Submitted::Stored { .. } | Submitted::HandedOff { .. })
        };
        let handed = |answer: &Submitted| matches!(answer, Submitted::HandedOff { .. });
        let those = |holds: fn(&Submitted) -> bool| {
            let pairs = tasks.iter().zip(answers).filter(move |(_, answer)| holds(answer));
            pairs.map(|(task, _)| &task.lane)
        };
        self.rates.count(What::Submitted, those(stored));
        self.rates.count(What::Started, those(handed));
    }

    fn free_seat(&self, task: &NewTask) -> Option<(Arc<Desk>, Waiting)> {
        let desks = self.desks.read();
        desks.iter().find_map(|desk| Some((Arc::clone(desk), desk.take_for_new(&task.lane)?)))
    }

    /// The worker left while its lease was being made.
    async fn give_back(&self, session: duly_core::id::SessionId, leases: &[Lease]) {
        let finishes = leases.iter().map(Lease::release).collect();
        let exchange = Exchange { session, finishes, claim: None };
        if let Err(error) = self.store.exchange(exchange).await {
            // They come back when the session ends.
            tracing::warn!(%error, leases = leases.len(), "leases could not be given back");
        }
    }
}

fn size(submission: &Submission) -> usize {
    submission.tasks.iter().map(|task| task.payload.len()).sum()
}

fn leases(tasks: &[NewTask], answers: &[Submitted]) -> Vec<Lease> {
    let lease = |(task, answer): (&NewTask, &Submitted)| match answer {
        Submitted::HandedOff { epoch, granted_at } => Some(task.handed_off(*epoch, *granted_at)),
        Submitted::Stored { .. }
        | Submitted::Replayed { .. }
        | Submitted::KeyReused
        | Submitted::LaneLimit => None,
    };
    tasks.iter().zip(answers).filter_map(lease).collect()
}

type Caller = (usize, oneshot::Sender<std::result::Result<Settled, Arc<Error>>>);

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
