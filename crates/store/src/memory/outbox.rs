//! The reference model's events: a list, and a place in it for each sink.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use duly_core::event::{Event, EventKind, Position, SinkName, Subscription};
use duly_core::id::{NodeId, ScheduleId, TaskId, WorkflowId};
use duly_core::limits::{SINK_ROWS, SINKS};
use duly_core::ports::store::{
    EventPage, Events, HeldSink, HoldSinks, Lag, Outbox as OutboxPort, PassEvents, PutSink,
    ReadEvents, Relay, Result, SinkChange, SinkState, SlotOutcome, StoredEvent, Suspension, Tidied,
    TidyEvents,
};
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_core::workflow::Workflow;
use tokio::sync::Notify;

use super::MemoryStore;
use super::model::Model;

#[derive(Default)]
pub(super) struct Outbox {
    sinks: BTreeMap<SinkName, Sink>,
    /// Events by their numbers, oldest first.
    events: VecDeque<(u64, Event)>,
    /// The number of the newest event there ever was.
    newest: u64,
    written: Arc<Notify>,
}

struct Sink {
    is: PutSink,
    created_at: Timestamp,
    /// When it was put last.
    put_at: Timestamp,
    /// The last event that it has received.
    position: u64,
    relay: Option<Relay>,
    term: u64,
    suspended: Option<Suspension>,
    trouble: Option<String>,
}

#[async_trait]
impl OutboxPort for MemoryStore {
    async fn put_sink(&self, sink: PutSink) -> Result<SinkChange> {
        Ok(self.model.lock().outbox.put(sink, self.clock.now()))
    }

    async fn resume_sink(&self, name: &SinkName) -> Result<bool> {
        Ok(self.model.lock().outbox.resume(name))
    }

    async fn remove_sink(&self, name: &SinkName) -> Result<bool> {
        Ok(self.model.lock().outbox.sinks.remove(name).is_some())
    }

    async fn sinks(&self) -> Result<Vec<SinkState>> {
        Ok(self.model.lock().outbox.states(self.clock.now()))
    }

    async fn hold_sinks(&self, order: HoldSinks) -> Result<Vec<HeldSink>> {
        Ok(self.model.lock().outbox.hold(&order, self.clock.now()))
    }

    async fn release_sinks(&self, node: NodeId) -> Result<()> {
        let sinks = &mut self.model.lock().outbox.sinks;
        for sink in sinks.values_mut() {
            sink.relay = sink.relay.filter(|relay| relay.node != node);
        }
        Ok(())
    }

    async fn events(&self, read: ReadEvents) -> Result<Events> {
        Ok(self.model.lock().outbox.read(&read))
    }

    async fn end_of_events(&self) -> Result<Position> {
        Ok(place(self.model.lock().outbox.newest))
    }

    async fn pass_events(&self, order: PassEvents) -> Result<bool> {
        Ok(self.model.lock().outbox.pass(order))
    }

    async fn tidy_events(&self, order: TidyEvents) -> Result<Tidied> {
        Ok(self.model.lock().outbox.tidy(order, self.clock.now()))
    }

    async fn event_rows(&self) -> Result<u64> {
        Ok(self.model.lock().outbox.events.len() as u64)
    }

    async fn tasks_of(&self, ids: Vec<TaskId>, payloads: bool) -> Result<Vec<Task>> {
        let model = self.model.lock();
        let found = ids.iter().filter_map(|id| model.tasks.get(id)).map(|task| model.named(task));
        let without = |task| Task { payload: "null".into(), ..task };
        Ok(found.map(|task| if payloads { task } else { without(task) }).collect())
    }

    async fn event_hint(&self) {
        let written = Arc::clone(&self.model.lock().outbox.written);
        written.notified().await;
    }
}

impl Outbox {
    fn put(&mut self, sink: PutSink, now: Timestamp) -> SinkChange {
        if let Some(known) = self.sinks.get_mut(&sink.name) {
            (known.is, known.put_at) = (sink, now);
            return SinkChange::Done { created: false };
        }
        if self.sinks.len() >= SINKS as usize {
            return SinkChange::TooMany;
        }
        let new = Sink {
            is: sink.clone(),
            created_at: now,
            put_at: now,
            position: self.newest,
            relay: None,
            term: 0,
            suspended: None,
            trouble: None,
        };
        self.sinks.insert(sink.name, new);
        SinkChange::Done { created: true }
    }

    fn resume(&mut self, name: &SinkName) -> bool {
        let newest = self.newest;
        let Some(sink) = self.sinks.get_mut(name) else { return false };
        if sink.suspended.take().is_some() {
            (sink.position, sink.trouble) = (newest, None);
        }
        true
    }

    fn states(&self, now: Timestamp) -> Vec<SinkState> {
        let state = |sink: &Sink| SinkState {
            sink: sink.is.clone(),
            created_at: sink.created_at,
            position: place(sink.position),
            lag: self.lag(sink),
            relay: sink.relay.filter(|relay| relay.until > now),
            suspended: sink.suspended.clone(),
            trouble: sink.trouble.clone(),
        };
        self.sinks.values().map(state).collect()
    }

    fn lag(&self, sink: &Sink) -> Lag {
        if sink.suspended.is_some() {
            return Lag::default();
        }
        let mut behind = self.events.iter().filter(|(number, _)| *number > sink.position);
        let since = behind.clone().next().map(|(_, event)| event.at);
        Lag { rows: behind.by_ref().take(bounded()).count() as u64, since }
    }

    fn hold(&mut self, order: &HoldSinks, now: Timestamp) -> Vec<HeldSink> {
        let until = now.plus(order.ttl);
        let is_own = |sink: &Sink| {
            sink.relay.is_some_and(|relay| relay.node == order.node && relay.until > now)
        };
        let mut held = self.sinks.values().filter(|sink| is_own(sink)).count();
        for (name, sink) in &mut self.sinks {
            let serves = order.names.contains(name);
            if sink.is.window.is_some() || sink.suspended.is_some() || !serves {
                continue;
            }
            let is_free = sink.relay.is_none_or(|relay| relay.until <= now);
            if is_free && held < order.most {
                (sink.term, held) = (sink.term + 1, held + 1);
                sink.relay = Some(Relay { node: order.node, term: sink.term, until });
            } else if is_own(sink) {
                sink.relay = Some(Relay { node: order.node, term: sink.term, until });
            }
        }
        let own = self.sinks.iter().filter(|(name, sink)| {
            is_own(sink) && sink.suspended.is_none() && order.names.contains(name)
        });
        let held = own.map(|(name, sink)| HeldSink {
            name: name.clone(),
            term: sink.term,
            position: place(sink.position),
        });
        held.collect()
    }

    fn read(&self, read: &ReadEvents) -> Events {
        let Some(sink) = self.sinks.get(&read.sink).filter(|sink| sink.suspended.is_none()) else {
            return Events::Closed;
        };
        let after = read.after.as_ref().map_or(sink.position, |after| after.number);
        if after < sink.position || after > self.newest {
            return Events::Gone;
        }
        let mut behind = self.events.iter().filter(|(number, _)| *number > after);
        let looked_at: Vec<_> = behind.by_ref().take(read.rows as usize).collect();
        let last = looked_at.last().map_or(after, |(number, _)| *number);
        let wanted = |(number, event): &&(u64, Event)| {
            let is_wanted = sink.is.subscriptions.iter().any(|it| it.matches(event));
            is_wanted.then(|| StoredEvent { position: place(*number), event: event.clone() })
        };
        let events = looked_at.iter().filter_map(wanted).collect();
        Events::Page(EventPage { events, next: place(last), more: behind.next().is_some() })
    }

    fn pass(&mut self, order: PassEvents) -> bool {
        let Some(sink) = self.sinks.get_mut(&order.sink) else { return false };
        let serves = |relay: Relay| relay.node == order.node && relay.term == order.term;
        if sink.suspended.is_some() || !sink.relay.is_some_and(serves) {
            return false;
        }
        sink.position = order.position.map_or(sink.position, |it| it.number.max(sink.position));
        sink.trouble = order.trouble;
        true
    }

    fn tidy(&mut self, order: TidyEvents, now: Timestamp) -> Tidied {
        let mut tidied = Tidied::default();
        self.sinks.retain(|name, sink| {
            let expired = sink.is.window.is_some_and(|window| sink.put_at.plus(window) <= now);
            tidied.expired.extend(expired.then(|| name.clone()));
            !expired
        });
        for sink in self.sinks.values_mut() {
            if let Some(window) = sink.is.window {
                let old = |event: &Event| event.at.plus(window) <= now;
                let last = self.events.iter().take_while(|(_, event)| old(event)).last();
                sink.position =
                    last.map_or(sink.position, |(number, _)| sink.position.max(*number));
            }
        }
        for (name, reason) in self.too_late(order, now) {
            let sink = self.sinks.get_mut(&name).expect("just listed");
            sink.suspended = Some(Suspension { at: now, reason });
            sink.relay = None;
            tidied.suspended.push(name);
        }
        let active = self.sinks.values().filter(|sink| sink.suspended.is_none());
        let passed = active.map(|sink| sink.position).min().unwrap_or(self.newest);
        let before = self.events.len();
        self.events.retain(|(number, _)| *number > passed);
        tidied.removed = (before - self.events.len()) as u64;
        tidied
    }

    /// Sinks that are too far behind, and why.
    fn too_late(&self, order: TidyEvents, now: Timestamp) -> Vec<(SinkName, String)> {
        let served =
            self.sinks.iter().filter(|(_, it)| it.is.window.is_none() && it.suspended.is_none());
        let late = served.filter_map(|(name, sink)| {
            let lag = self.lag(sink);
            Some((name.clone(), order.verdict(lag, now)?))
        });
        late.collect()
    }

    fn wants(&self, is_wanted: impl Fn(&Subscription) -> bool) -> bool {
        let active = self.sinks.values().filter(|sink| sink.suspended.is_none());
        active.flat_map(|sink| &sink.is.subscriptions).any(is_wanted)
    }

    fn push(&mut self, event: Event) {
        self.newest += 1;
        self.events.push_back((self.newest, event));
        self.written.notify_one();
    }
}

fn bounded() -> usize {
    usize::try_from(SINK_ROWS).expect("a million fits")
}

fn place(number: u64) -> Position {
    Position { view: "".into(), at: Timestamp::EPOCH, number, index: 0 }
}

impl Model {
    /// Writes an event about a task, as it is now, if a sink wants it.
    pub(super) fn tell(&mut self, kind: EventKind, id: TaskId, now: Timestamp) {
        let Some(task) = self.tasks.get(&id) else { return };
        let wanted = |it: &Subscription| it.wants(kind, &task.lane);
        if !task.lane.queue.is_reserved() && self.outbox.wants(wanted) {
            let event = Event::of_task(kind, &task.lane, (id, task.run, task.epoch), now);
            self.outbox.push(event);
        }
    }

    /// Writes an event, if a sink wants it.
    pub(super) fn emit(&mut self, event: Event) {
        if self.outbox.wants(|it| it.matches(&event)) {
            self.outbox.push(event);
        }
    }

    pub(super) fn tell_of_new_workflow(&mut self, workflow: &Workflow, now: Timestamp) {
        let Workflow { tenant, id, name, .. } = workflow;
        self.emit(Event::workflow_started(tenant, *id, name, now));
    }

    pub(super) fn tell_of_ended_workflow(&mut self, id: WorkflowId, now: Timestamp) {
        let Workflow { tenant, status, .. } = &self.workflows[&id];
        self.emit(Event::workflow_ended(tenant, id, *status, now));
    }

    pub(super) fn tell_of_slot(
        &mut self,
        schedule: ScheduleId,
        slot: Timestamp,
        outcome: SlotOutcome,
        now: Timestamp,
    ) {
        let known = &self.schedules.all[&schedule].schedule;
        let (tenant, name) = (&known.tenant, &known.name);
        self.emit(outcome.event((tenant, name), slot, now));
    }
}
