//! Two stores that are asked the same, on clocks that are moved alike.

use std::fmt;
use std::sync::Arc;

use duly_core::audit::{AuditEntry, Author};
use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Home, ListAudit, ListTasks, LogPosition, OpenSession, OpenedSession, Put, ReadLogs, Rules,
    Store, Submitted, SubmittedWorkflow,
};
use duly_core::time::Timestamp;
use duly_store::clock::ManualClock;
use duly_store::memory::MemoryStore;

use crate::call::{Answer, Beats, Call, ask};
use crate::events::{Reader, sink};
use crate::known::{Known, Worker, tenant};
use crate::schedules::name;
use crate::step::{Step, Why};
use crate::subject::Subject;
use crate::tally::Tally;

const START: i64 = 1_900_000_000_000;
/// Low, so that histories get there.
pub(crate) const RULES: Rules = Rules { loss_limit: 3 };

pub(crate) struct World<S> {
    memory: Arc<MemoryStore>,
    subject: S,
    clocks: [Arc<ManualClock>; 2],
    beats: [Beats; 2],
    readers: [Reader; 2],
    known: Known,
    pub(crate) tally: Tally,
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(START)))
}

fn author() -> Author {
    Author { actor: Arc::from("key:7"), request_id: Some(Arc::from("request-1")) }
}

/// The newest entries of the audit log. Their numbers are the store's to give.
async fn last_entries(store: &dyn Store) -> Vec<AuditEntry> {
    let page = ListAudit { limit: 10, ..ListAudit::default() };
    let entries = store.audit_log(page).await.unwrap();
    entries.into_iter().map(|entry| AuditEntry { number: 0, ..entry }).collect()
}

impl<S: Subject> World<S> {
    pub(crate) async fn new() -> Self {
        let clocks = [clock(), clock()];
        let world = Self {
            memory: Arc::new(MemoryStore::new(clocks[0].clone(), RULES)),
            subject: S::new(&clocks[1]).await,
            beats: [Beats::new(), Beats::new()],
            readers: Default::default(),
            known: Known::new(clocks[0].now()),
            tally: Tally::default(),
            clocks,
        };
        for store in world.stores() {
            store.put_sink(sink(true)).await.unwrap();
        }
        world
    }

    fn stores(&self) -> [Arc<dyn Store>; 2] {
        [self.memory.clone(), self.subject.store()]
    }

    /// Takes a step in both stores and compares what they say and what they hold.
    pub(crate) async fn take(&mut self, step: Step) {
        match step {
            Step::Advance(by) => {
                self.clocks.iter().for_each(|clock| clock.advance(by));
                self.known.now = self.clocks[0].now();
            }
            Step::Crash => {
                self.crash().await;
                self.known.state.clear();
                self.compare(&"a crash").await;
            }
            step => {
                let Some(call) = self.known.call(step) else { return };
                self.ask(call).await;
            }
        }
        self.tally.steps += 1;
    }

    async fn ask(&mut self, call: Call) {
        let stores = self.stores();
        // Every other call is a user's.
        let [model, subject] = match self.tally.steps % 2 {
            0 => stores,
            _ => stores.map(|store| store.on_behalf_of(author())),
        };
        let expected = ask(&*model, &self.beats[0], call.clone()).await;
        let found = ask(&*subject, &self.beats[1], call.clone()).await;
        drop((model, subject));
        assert_eq!(found, expected, "the store (left) and the model disagree on {call:?}");
        self.learn(&call, &expected);
        let before = std::mem::take(&mut self.known.state);
        self.compare(&call).await;
        self.tally.note(&call, &expected, &before, &self.known);
        self.known.calls.push(call);
    }

    async fn crash(&mut self) {
        self.tally.note_crash(&self.known);
        self.memory = self.subject.crash_model(&self.memory, &self.known).await;
        self.subject.crash(&self.clocks[1]).await;
        // The process that watched the beats has died too.
        self.beats = [Beats::new(), Beats::new()];
        for worker in &mut self.known.workers {
            worker.open &= worker.remote;
        }
    }

    fn learn(&mut self, call: &Call, answer: &Answer) {
        match (call, answer) {
            (Call::Open(session), _) => self.learn_session(session),
            (Call::Heartbeat(beat), Answer::IsOpen(true)) => {
                let beaten = self.known.workers.iter_mut().find(|it| it.id == beat.session);
                beaten.into_iter().for_each(|worker| worker.beats += 1);
            }
            (Call::End { session, why }, _) if *why != Why::DiedBefore => {
                let ended = self.known.workers.iter_mut().find(|it| it.id == *session);
                ended.into_iter().for_each(|worker| worker.open = worker.remote);
            }
            (Call::Submit(batch), Answer::Submitted(answers)) => {
                for (task, answer) in batch.tasks.iter().zip(answers) {
                    if !self.known.tasks.contains(&task.id)
                        && matches!(answer, Submitted::Stored { .. })
                    {
                        self.known.tasks.push(task.id);
                    }
                    if let (Submitted::HandedOff { epoch, .. }, Some(offer)) =
                        (answer, &batch.offer)
                    {
                        self.known.tasks.retain(|id| *id != task.id);
                        self.known.tasks.push(task.id);
                        self.learn_leases(offer.session, offer.sequence, &[(task.id, *epoch)]);
                    }
                }
            }
            (Call::Workflow(new), Answer::Workflow(SubmittedWorkflow::Stored { .. })) => {
                let known = self.known.workflows.iter().any(|(id, _)| *id == new.id);
                if !known {
                    self.known.workflows.push((new.id, new.tenant == tenant(true)));
                }
            }
            (Call::Exchange(exchange), Answer::Exchanged { leases, .. }) => {
                let leases: Vec<_> = leases.iter().map(|it| (it.task, it.epoch)).collect();
                if let Some(claim) = &exchange.claim {
                    self.learn_leases(claim.session, claim.sequence, &leases);
                }
            }
            (Call::Decide(_), Answer::Decided(answers)) => self.known.learn_slots(answers),
            (_, Answer::Put(Put::Done { version })) => self.known.version = *version,
            _ => {}
        }
    }

    fn learn_session(&mut self, session: &OpenSession) {
        if self.known.workers.iter().all(|worker| worker.id != session.id) {
            let remote = session.home == Home::Remote;
            let (open, sequence, leases, beats) = (true, 0, Vec::new(), 0);
            let worker = Worker { id: session.id, remote, open, sequence, leases, beats };
            self.known.workers.push(worker);
        }
    }

    fn learn_leases(&mut self, session: SessionId, sequence: u64, leases: &[(TaskId, u32)]) {
        let worker = self.known.workers.iter_mut().find(|worker| worker.id == session);
        let Some(worker) = worker else { return };
        worker.sequence = worker.sequence.max(sequence);
        for lease in leases {
            if !worker.leases.contains(lease) {
                worker.leases.push(*lease);
            }
        }
    }

    /// Both stores hold the same.
    async fn compare(&mut self, after: &(dyn fmt::Debug + Sync)) {
        let [model, subject] = self.stores();
        for other in [false, true] {
            let (tenant, filter) = (tenant(other), Filter::default());
            let page = ListTasks { tenant, filter, before: None, limit: 200 };
            let (expected, found) = (model.list(page.clone()).await, subject.list(page).await);
            let (expected, found) = (expected.unwrap().tasks, found.unwrap().tasks);
            assert_eq!(found, expected, "the store (left) differs from the model after {after:?}");
            for task in expected {
                if !self.known.tasks.contains(&task.id) {
                    self.known.tasks.push(task.id);
                }
                self.known.state.insert(task.id, task);
            }
        }
        for (id, other) in &self.known.workflows {
            let owner = tenant(*other);
            let (expected, found) =
                (model.workflow(&owner, *id).await, subject.workflow(&owner, *id).await);
            let (expected, found) = (expected.unwrap(), found.unwrap());
            assert_eq!(found, expected, "the store's workflow (left) differs after {after:?}");
        }
        self.compare_schedules(after).await;
        self.compare_events(after).await;
        let (expected, found) = (last_entries(&*model).await, last_entries(&*subject).await);
        assert_eq!(found, expected, "the store's audit log (left) differs after {after:?}");
        let ids: Vec<_> = self.known.state.keys().copied().collect();
        let turn = usize::try_from(self.tally.steps).unwrap();
        for id in ids.iter().cycle().skip(turn).take(ids.len().min(1)) {
            self.compare_attempts(*id).await;
        }
        let (expected, found) =
            (model.settings().await.unwrap(), subject.settings().await.unwrap());
        assert_eq!(found, expected, "the store's settings (left) differ after {after:?}");
        let (expected, found) =
            (model.sessions().await.unwrap(), subject.sessions().await.unwrap());
        let (expected, found) = (self.look_at(0, expected), self.look_at(1, found));
        assert_eq!(found, expected, "the store's sessions (left) differ after {after:?}");
        for worker in self.known.workers.iter_mut().filter(|worker| worker.remote) {
            worker.open = expected.iter().any(|(opened, _)| opened.id == worker.id);
        }
    }

    async fn compare_schedules(&mut self, after: &(dyn fmt::Debug + Sync)) {
        let [model, subject] = self.stores();
        for (place, other) in [false, true].into_iter().enumerate() {
            let (owner, name) = (tenant(false), name(other));
            let expected = model.schedule(&owner, &name).await.unwrap();
            let found = subject.schedule(&owner, &name).await.unwrap();
            assert_eq!(found, expected, "the store's schedule (left) differs after {after:?}");
            let records = model.slot_records(&owner, &name).await.unwrap();
            let found = subject.slot_records(&owner, &name).await.unwrap();
            assert_eq!(found, records, "the store's slots (left) differ after {after:?}");
            self.known.schedules[place] = expected;
        }
    }

    /// Both stores have told the same of what has just happened.
    async fn compare_events(&mut self, after: &(dyn fmt::Debug + Sync)) {
        let [model, subject] = self.stores();
        let expected = self.readers[0].read(&*model).await;
        let found = self.readers[1].read(&*subject).await;
        assert_eq!(found, expected, "the store's events (left) differ after {after:?}");
        self.tally.note_events(expected.kinds());
        if Reader::passes(self.tally.steps) {
            for (reader, store) in self.readers.iter().zip([model, subject]) {
                reader.pass(&*store).await;
            }
        }
    }

    async fn compare_attempts(&self, id: TaskId) {
        let owner = &self.known.state[&id].lane.tenant;
        let [model, subject] = self.stores();
        let (expected, found) =
            (model.attempts(owner, id).await, subject.attempts(owner, id).await);
        assert_eq!(found.unwrap(), expected.unwrap(), "the attempts of {id}");
        let (tenant, after) = (owner.clone(), LogPosition::default());
        let read = ReadLogs { tenant, task: id, epoch: None, after, limit: usize::MAX };
        let (expected, found) = (model.logs(read.clone()).await, subject.logs(read).await);
        assert_eq!(found.unwrap(), expected.unwrap(), "the logs of {id}");
    }

    /// Open sessions by their ids, and whether each has beaten since the last look.
    fn look_at(&mut self, side: usize, opened: Vec<OpenedSession>) -> Vec<(OpenSession, bool)> {
        let look = |it: OpenedSession| {
            let seen = self.beats[side].entry(it.opened.id).or_default();
            let beaten = seen.last() != Some(&it.beat);
            seen.push(it.beat);
            (it.opened, beaten)
        };
        let mut sessions: Vec<_> = opened.into_iter().map(look).collect();
        sessions.sort_by_key(|(opened, _)| opened.id);
        sessions
    }

    /// A last look at everything.
    pub(crate) async fn leave(&mut self) {
        let ids: Vec<_> = self.known.state.keys().copied().collect();
        for id in ids {
            self.compare_attempts(id).await;
        }
    }
}
