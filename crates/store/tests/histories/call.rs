//! Calls of a store as values, so that two stores can be asked the same and their answers compared.

use std::collections::{BTreeMap, BTreeSet};

use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::{Finished, Lease};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    CancelTasks, Controlled, CountTasks, DeadGroup, Decide, Decided, DeleteSchedule, DeleteTasks,
    EditTask, Ending, Exchange, ExtendLeases, Extended, Graph, GroupDead, Heartbeat, ListDead,
    ListTasks, LogPage, OpenSession, Parent, PauseQueue, Put, PutSchedule, PutSettings, PutSink,
    QueuePosition, QueueState, ReadLogs, Reap, ReplayTasks, ReplayedDownstream, Report, Reported,
    RetryTasks, ScheduleChange, SinkChange, Store, Submit, Submitted, SubmittedWorkflow, Sweep,
    SwitchSchedule, TaskCount, WorkflowChange,
};
use duly_core::schedule::Schedule;
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::NewWorkflow;

use crate::schedules;
use crate::step::Why;

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Submit(Submit),
    Open(OpenSession),
    Heartbeat(Heartbeat),
    End { session: SessionId, why: Why },
    Exchange(Exchange),
    Extend(ExtendLeases),
    Report(Report),
    Reap(Reap),
    Cancel(CancelTasks),
    Replay(ReplayTasks),
    Retry(RetryTasks),
    Delete(DeleteTasks),
    Edit(EditTask),
    Pause(PauseQueue),
    Resume(TenantName, QueueName),
    Sweep(Sweep),
    Settings(PutSettings),
    Get(TenantName, TaskId),
    Attempts(TenantName, TaskId),
    Logs(ReadLogs),
    List(ListTasks),
    Dead(ListDead),
    Groups(GroupDead),
    Count(CountTasks),
    Queue(TenantName, QueueName),
    QueuePosition(TenantName, TaskId),
    Parents(TaskId),
    Workflow(NewWorkflow),
    CancelWorkflow(TenantName, WorkflowId),
    RetryWorkflow(TenantName, WorkflowId),
    Graph(TenantName, WorkflowId),
    ReplayDownstream(TenantName, TaskId, u32),
    Cascade,
    PutSchedule(PutSchedule),
    SwitchSchedule(SwitchSchedule),
    DeleteSchedule(DeleteSchedule),
    Decide(Vec<Decide>),
    SchedulesChanged(u64),
    Listen(PutSink),
}

/// An answer, as far as it means anything: what is a hint or has no order is left out or sorted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Submitted(Vec<Submitted>),
    Opened,
    IsOpen(bool),
    PutBack(BTreeSet<TaskId>),
    Exchanged {
        finished: Vec<Finished>,
        leases: Vec<Lease>,
        next_due: Option<Timestamp>,
    },
    Extended(Vec<Extended>),
    Reported(Vec<Reported>),
    TakenBack(BTreeSet<(SessionId, TaskId, u32)>),
    Controlled(Vec<Controlled>),
    /// How many by all calls of one sweep: how far one of them goes is up to the store.
    Swept {
        deleted: u32,
    },
    Put(Put),
    Task(Box<Option<Task>>),
    Attempts(Option<Vec<Attempt>>),
    Logs(Option<LogPage>),
    /// The tasks of every page, from the one asked for on: where a page ends among tasks that it
    /// does not show is up to the store.
    Pages(Vec<Vec<Task>>),
    Groups(Vec<DeadGroup>),
    Count(TaskCount),
    IsQueue(bool),
    Queue(Option<QueueState>),
    QueuePosition(Option<QueuePosition>),
    Parents(Vec<Vec<Parent>>),
    Workflow(SubmittedWorkflow),
    WorkflowChange(WorkflowChange),
    Graph(Option<Graph>),
    ReplayedDownstream(ReplayedDownstream),
    /// All that the steps of one cascade cancelled.
    Cascaded(BTreeSet<(TaskId, Option<(SessionId, u32)>)>),
    Schedule(ScheduleChange),
    Decided(Vec<Decided>),
    Schedules(Vec<Schedule>),
    Sink(SinkChange),
}

/// The beats that a session was seen at, oldest first. They are tokens: another store has others.
pub(crate) type Beats = BTreeMap<SessionId, Vec<u64>>;

/// Makes the call.
pub(crate) async fn ask(store: &dyn Store, beats: &Beats, call: Call) -> Answer {
    match call {
        Call::Submit(batch) => Answer::Submitted(store.submit(batch).await.unwrap()),
        Call::Open(session) => {
            store.open_session(session).await.unwrap();
            Answer::Opened
        }
        Call::Heartbeat(beat) => Answer::IsOpen(store.beat(beat).await.unwrap()),
        Call::End { session, why } => {
            let ended = store.end_session(session, ending(beats, session, why)).await;
            Answer::PutBack(ended.unwrap().into_iter().collect())
        }
        Call::Exchange(exchange) => {
            let answer = store.exchange(exchange).await.unwrap();
            if let Some(parents) = answer.parents {
                let children = answer.leases.iter().filter(|lease| lease.has_parents);
                let children = children.map(|lease| lease.task).collect();
                assert_eq!(parents, store.parents(children).await.unwrap(), "read along");
            }
            let (finished, next_due) = (answer.finished, answer.next_due);
            // May be spurious.
            let bare = |lease| Lease { has_parents: false, has_children: false, ..lease };
            let leases = answer.leases.into_iter().map(bare).collect();
            Answer::Exchanged { finished, leases, next_due }
        }
        Call::Extend(order) => Answer::Extended(store.extend(order).await.unwrap()),
        Call::Report(report) => Answer::Reported(store.report(report).await.unwrap()),
        Call::Reap(reap) => {
            let taken_back = store.reap(reap).await.unwrap().taken_back.into_iter();
            let named = taken_back.map(|(session, it)| (session, it.task, it.epoch));
            Answer::TakenBack(named.collect())
        }
        Call::Cancel(order) => Answer::Controlled(store.cancel(order).await.unwrap()),
        Call::Replay(order) => Answer::Controlled(store.replay(order).await.unwrap()),
        Call::Retry(order) => Answer::Controlled(store.retry(order).await.unwrap()),
        Call::Delete(order) => Answer::Controlled(store.delete(order).await.unwrap()),
        Call::Edit(order) => Answer::Controlled(vec![store.edit(order).await.unwrap()]),
        Call::Pause(order) => Answer::IsQueue(store.pause_queue(order).await.unwrap()),
        Call::Resume(tenant, queue) => {
            Answer::IsQueue(store.resume_queue(&tenant, &queue).await.unwrap())
        }
        Call::Sweep(mut sweep) => {
            let mut deleted = 0;
            loop {
                let swept = store.sweep(sweep.clone()).await.unwrap();
                deleted += swept.deleted;
                sweep.after = swept.next;
                if sweep.after.is_none() {
                    return Answer::Swept { deleted };
                }
            }
        }
        Call::Settings(put) => Answer::Put(store.put_settings(put).await.unwrap()),
        Call::Listen(sink) => Answer::Sink(store.put_sink(sink).await.unwrap()),
        order @ (Call::PutSchedule(_)
        | Call::SwitchSchedule(_)
        | Call::DeleteSchedule(_)
        | Call::Decide(_)
        | Call::SchedulesChanged(_)) => schedules::ask(store, order).await,
        order => order_workflow(store, order).await,
    }
}

/// Makes a call about workflows, or a query.
async fn order_workflow(store: &dyn Store, call: Call) -> Answer {
    match call {
        Call::Workflow(new) => Answer::Workflow(store.submit_workflow(new).await.unwrap()),
        Call::CancelWorkflow(tenant, id) => {
            let answer = store.cancel_workflow(&tenant, id, "enough".to_owned()).await;
            Answer::WorkflowChange(answer.unwrap())
        }
        Call::RetryWorkflow(tenant, id) => {
            Answer::WorkflowChange(store.retry_workflow(&tenant, id).await.unwrap())
        }
        Call::ReplayDownstream(tenant, task, run) => {
            let answer = store.replay_downstream(&tenant, task, run).await;
            Answer::ReplayedDownstream(answer.unwrap())
        }
        Call::Cascade => {
            let mut cancelled = BTreeSet::new();
            loop {
                let step = store.cascade(2).await.unwrap();
                cancelled.extend(step.cancelled);
                if !step.more {
                    return Answer::Cascaded(cancelled);
                }
            }
        }
        read => look(store, read).await,
    }
}

async fn look(store: &dyn Store, call: Call) -> Answer {
    match call {
        Call::Get(tenant, id) => Answer::Task(Box::new(store.get(&tenant, id).await.unwrap())),
        Call::Attempts(tenant, id) => Answer::Attempts(store.attempts(&tenant, id).await.unwrap()),
        Call::Logs(read) => Answer::Logs(store.logs(read).await.unwrap()),
        Call::List(mut page) => {
            let mut pages = Vec::new();
            loop {
                let found = store.list(page.clone()).await.unwrap();
                pages.push(found.tasks);
                page.before = found.next_before;
                // A page for nothing says nothing about the next one.
                if page.before.is_none() || page.limit == 0 {
                    return Answer::Pages(pages);
                }
            }
        }
        Call::Dead(mut page) => {
            let mut pages = Vec::new();
            loop {
                let found = store.dead_letters(page.clone()).await.unwrap();
                pages.push(found.tasks);
                page.before = found.next_before;
                if page.before.is_none() || page.limit == 0 {
                    return Answer::Pages(pages);
                }
            }
        }
        Call::Groups(which) => {
            let mut groups = store.dead_groups(which).await.unwrap().groups;
            assert!(groups.is_sorted_by_key(|group| std::cmp::Reverse(group.count)), "{groups:?}");
            groups.sort_by_key(|it| (it.queue.clone(), it.task_type.clone(), it.group.to_bits()));
            Answer::Groups(groups)
        }
        Call::Count(which) => Answer::Count(store.count(which).await.unwrap()),
        Call::Queue(tenant, queue) => Answer::Queue(store.queue(&tenant, &queue).await.unwrap()),
        Call::QueuePosition(tenant, id) => {
            Answer::QueuePosition(store.place(&tenant, id).await.unwrap())
        }
        Call::Parents(task) => Answer::Parents(store.parents(vec![task]).await.unwrap()),
        Call::Graph(tenant, id) => Answer::Graph(store.graph(&tenant, id).await.unwrap()),
        write => panic!("{write:?} is no query"),
    }
}

fn ending(beats: &Beats, session: SessionId, why: Why) -> Ending {
    let seen = beats.get(&session).map_or(&[][..], |seen| seen);
    let last = seen.last().copied().unwrap_or(0);
    match why {
        Why::Closed => Ending::Closed,
        Why::Died => Ending::Died { beat: last },
        Why::DiedBefore => {
            let earlier = seen.iter().rev().find(|beat| **beat != last);
            Ending::Died { beat: earlier.copied().unwrap_or(u64::MAX) }
        }
    }
}
