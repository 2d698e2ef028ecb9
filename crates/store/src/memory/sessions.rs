//! What the reference model does as sessions open, beat, die and overrun their deadlines.

use std::collections::HashSet;

use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::lease::Outcome;
use duly_core::ports::store::{
    Ending, Heartbeat, Home, OpenSession, OpenedSession, Reap, Reaped, WorkerState,
};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::state::{Event, Status};
use duly_core::task::Failure;
use duly_core::time::Timestamp;

use super::model::{Hint, Model, Session, deadline, earliest, holds};
use super::task_state::End;

impl Model {
    pub(super) fn open_session(&mut self, opened: OpenSession, now: Timestamp) {
        if !self.name(opened.id, &opened.name) {
            return;
        }
        let unstarted = HashSet::new();
        let id = opened.id;
        let session = Session {
            opened,
            newest: 0,
            beat: 0,
            beat_at: now,
            draining: false,
            unstarted,
            waits_for: None,
        };
        self.sessions.insert(id, session);
    }

    pub(super) fn beat(&mut self, beat: Heartbeat, now: Timestamp) -> bool {
        let Some(session) = self.sessions.get_mut(&beat.session) else { return false };
        session.beat += 1;
        session.beat_at = now;
        session.unstarted = beat.unstarted.into_iter().collect();
        for sequence in beat.received {
            if let Some(grant) = self.grants.get_mut(&(beat.session, sequence)) {
                grant.received = true;
            }
        }
        true
    }

    pub(super) fn remote_sessions(&self) -> Vec<OpenedSession> {
        let remote = self.sessions.values().filter(|it| it.opened.home == Home::Remote);
        let state = |it: &Session| OpenedSession {
            opened: it.opened.clone(),
            beat: it.beat,
            draining: it.draining,
        };
        remote.map(state).collect()
    }

    pub(super) fn workers(&self, node: NodeId, now: Timestamp) -> Vec<WorkerState> {
        let state = |it: &Session| {
            let local = it.opened.home == Home::Local;
            let held = self.tasks.values().filter(|task| holds(task, it.opened.id)).count();
            WorkerState {
                opened: it.opened.clone(),
                node: local.then_some(node),
                draining: it.draining,
                beat_at: if local { now } else { it.beat_at },
                leases: u32::try_from(held).unwrap_or(u32::MAX),
            }
        };
        self.sessions.values().map(state).collect()
    }

    pub(super) fn drain(&mut self, id: SessionId, draining: bool) -> bool {
        let session = self.sessions.get_mut(&id);
        session.map(|session| session.draining = draining).is_some()
    }

    pub(super) fn draining(&self, ids: &[SessionId]) -> Vec<SessionId> {
        let drains = |id: &&SessionId| self.sessions.get(id).is_some_and(|it| it.draining);
        ids.iter().filter(drains).copied().collect()
    }

    pub(super) fn end_session(
        &mut self,
        id: SessionId,
        ending: Ending,
        now: Timestamp,
    ) -> (Vec<TaskId>, Hint) {
        let Some(session) = self.sessions.get(&id) else { return (Vec::new(), None) };
        if matches!(ending, Ending::Died { beat } if beat != session.beat) {
            return (Vec::new(), None);
        }
        let unstarted = session.unstarted.clone();
        let mut hint = session.waits_for.map(|_| now);
        let held: Vec<TaskId> =
            self.tasks.values().filter(|task| holds(task, id)).map(|task| task.id).collect();
        for task in &held {
            if ending == Ending::Closed || unstarted.contains(task) {
                self.release(*task, now);
            } else {
                self.lose(*task, now);
            }
            hint = earliest(hint, self.tasks[task].run_at);
        }
        self.sessions.remove(&id);
        self.ended.insert(id, now);
        self.settle(now);
        (held, hint)
    }

    /// The process ends: its own sessions are gone, and what the others said is forgotten.
    pub(super) fn crash(&mut self, now: Timestamp) {
        let local = |session: &Session| session.opened.home == Home::Local;
        let gone: HashSet<SessionId> =
            self.sessions.iter().filter(|(_, it)| local(it)).map(|(id, _)| *id).collect();
        self.sessions.retain(|id, _| !gone.contains(id));
        self.ended.extend(gone.into_iter().map(|id| (id, now)));
        let running: Vec<TaskId> = self
            .tasks
            .values()
            .filter(|task| task.status == Status::Running)
            .map(|task| task.id)
            .collect();
        for id in running {
            let task = &self.tasks[&id];
            if task.session.is_none_or(|session| !self.sessions.contains_key(&session)) {
                self.lose(id, now);
            } else if !self.extended.contains(&(id, task.epoch)) {
                let late = now.since(task.granted_at.expect("it runs"));
                self.deadlines.insert(id, deadline(task).plus(late));
            }
        }
        self.settle(now);
        self.forget_claims(now);
    }

    fn forget_claims(&mut self, now: Timestamp) {
        let tasks = &self.tasks;
        let alive = |session, (id, epoch): &(TaskId, u32)| {
            tasks.get(id).is_some_and(|task| task.epoch == *epoch && holds(task, session))
        };
        self.grants.retain(|(session, _), grant| {
            grant.received = false;
            grant.served_at = now;
            grant.leases.iter().any(|lease| alive(*session, lease))
        });
        for (id, session) in &mut self.sessions {
            let known = self.grants.keys().filter(|(holder, _)| holder == id);
            session.newest = known.map(|(_, sequence)| *sequence).max().unwrap_or(0);
            session.unstarted.clear();
            session.waits_for = None;
            session.beat_at = now;
        }
    }

    fn release(&mut self, id: TaskId, now: Timestamp) {
        let task = self.tasks.get_mut(&id).expect("it runs");
        task.session = None;
        self.waiting(id, Event::Release, now);
    }

    fn lose(&mut self, id: TaskId, now: Timestamp) {
        let limit = self.loss_limit();
        let losses = self.tasks[&id].losses + 1;
        self.record(id, Failure::worker_lost(losses), None, now);
        let task = self.tasks.get_mut(&id).expect("it runs");
        task.losses = losses;
        task.session = None;
        if losses < limit {
            self.waiting(id, Event::Lose, now);
        } else {
            let error = Some(Failure::worker_lost(losses));
            self.ended(id, Event::Abandon, End { at: now, result: None, error });
        }
    }

    pub(super) fn reap(&mut self, reap: &Reap, now: Timestamp) -> (Reaped, Hint) {
        let mut reaped = Reaped::default();
        let mut hint = None;
        for id in self.overdue(now) {
            reaped.taken_back.extend(self.taken_back(id));
            self.record(id, Failure::overdue(), None, now);
            let task = &self.tasks[&id];
            let wait = task.back_off.wait_for(id, task.charged + 1, reap.entropy);
            let error = Failure::overdue();
            self.conclude(id, &Outcome::Retry { error, entropy: 0, after: Some(wait) }, now);
            let task = self.tasks.get_mut(&id).expect("it ran");
            task.session = None;
            hint = earliest(hint, task.run_at);
        }
        for id in self.unacknowledged(reap.unacknowledged_before) {
            reaped.taken_back.extend(self.taken_back(id));
            self.release(id, now);
            hint = earliest(hint, self.tasks[&id].run_at);
        }
        self.settle(now);
        let running = self.tasks.values().filter(|task| task.status == Status::Running);
        reaped.next_deadline = running.map(|task| self.deadlines[&task.id]).min();
        (reaped, hint)
    }

    fn overdue(&self, now: Timestamp) -> Vec<TaskId> {
        let running = self.tasks.values().filter(|task| task.status == Status::Running);
        let late = running.filter(|task| self.deadlines[&task.id] <= now);
        late.map(|task| task.id).collect()
    }

    fn unacknowledged(&self, before: Timestamp) -> Vec<TaskId> {
        let quiet = self.grants.iter().filter(|((id, sequence), grant)| {
            let session = self.sessions.get(id);
            let remote = session.filter(|session| session.opened.home == Home::Remote);
            let newest = remote.is_some_and(|session| session.newest == *sequence);
            newest && !grant.received && grant.served_at < before
        });
        let held = quiet.flat_map(|((session, _), grant)| {
            grant.leases.iter().filter(|(id, epoch)| {
                let task = self.tasks.get(id);
                task.is_some_and(|task| task.epoch == *epoch && holds(task, *session))
            })
        });
        held.map(|(id, _)| *id).collect()
    }

    fn taken_back(&self, id: TaskId) -> Option<(SessionId, TakenBack)> {
        let task = &self.tasks[&id];
        let lost = TakenBack { task: id, epoch: task.epoch, why: Why::Lost };
        task.session.map(|session| (session, lost))
    }
}
