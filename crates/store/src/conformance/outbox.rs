//! Events: each change of a task, a workflow, a schedule or a queue is followed by its event, in the
//! transaction of the change, and no event is without its change.

use std::sync::Arc;
use std::time::Duration;

use duly_core::event::{About, Event, EventKind, Kinds, Position, SinkName, Subscription};
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::limits::EVENTS_PER_ROW;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    CancelTasks, Controlled, Cutoffs, DeleteTasks, EditTask, Events, PauseQueue, PutSettings,
    PutSink, ReadEvents, Replay, ReplayTasks, Report, ReportItem, RetryTasks, SlotOrder,
    StoredEvent, Submit, SubmittedWorkflow, Sweep, TaskChange,
};
use duly_core::progress::Progress;
use duly_core::schedule::{Overlap, SkipReason};
use duly_core::settings::Settings;
use duly_core::task::NewTask;
use duly_core::workflow::{Condition, Dependency, Links};

use super::Harness;
use super::harness::{fail, retry, success};
use super::schedules::{change, decide, outcomes, put, task_of};
use super::workflows::{end, workflow};

use EventKind::{
    ScheduleFired, ScheduleSkipped, SettingsChanged, TaskCancelled, TaskCreated, TaskDeleted,
    TaskEdited, TaskFailed, TaskLost, TaskProgressed, TaskReleased, TaskReplayed, TaskRetried,
    TaskStarted, TaskSucceeded, TaskUnblocked, WorkflowEnded, WorkflowStarted,
};

pub(super) fn own() -> TenantName {
    TenantName::default_tenant()
}

pub(super) fn sink(name: &str) -> SinkName {
    SinkName::new(name).unwrap()
}

/// A sink that receives what this subscription wants.
pub(super) async fn subscribe(harness: &Harness, name: &str, subscription: Subscription) {
    let put = PutSink { name: sink(name), subscriptions: vec![subscription], window: None };
    harness.store().put_sink(put).await.unwrap();
}

/// A sink that receives everything.
pub(super) async fn subscribe_to_all(harness: &Harness, name: &str) {
    subscribe(harness, name, Subscription::to(Kinds::ALL)).await;
}

pub(super) async fn read(harness: &Harness, name: &str, after: Option<Position>) -> Events {
    read_rows(harness, name, after, 100).await
}

async fn read_rows(harness: &Harness, name: &str, after: Option<Position>, rows: u32) -> Events {
    harness.store().events(ReadEvents { sink: sink(name), after, rows }).await.unwrap()
}

/// Everything that a sink has not received yet, read in pages of so many rows.
pub(super) async fn stored(harness: &Harness, name: &str, rows: u32) -> Vec<StoredEvent> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let found = read_rows(harness, name, after, rows).await;
        let Events::Page(page) = found else { panic!("{found:?}") };
        all.extend(page.events);
        if !page.more {
            return all;
        }
        after = Some(page.next);
    }
}

/// The same without positions.
pub(super) async fn events(harness: &Harness, name: &str) -> Vec<Event> {
    stored(harness, name, 100).await.into_iter().map(|it| it.event).collect()
}

async fn kinds(harness: &Harness, name: &str) -> Vec<EventKind> {
    events(harness, name).await.iter().map(|event| event.kind).collect()
}

/// The events about a task, with run and epoch.
async fn of_task(harness: &Harness, name: &str, task: TaskId) -> Vec<(EventKind, u32, u32)> {
    let about = |event: Event| match event.about {
        About::Task { id, run, epoch } if id == task => Some((event.kind, run, epoch)),
        _ => None,
    };
    events(harness, name).await.into_iter().filter_map(about).collect()
}

async fn cancel(harness: &Harness, task: TaskId) {
    let order = CancelTasks { tenant: own(), tasks: vec![task], reason: "no need".to_owned() };
    harness.store().cancel(order).await.unwrap();
}

async fn replay(harness: &Harness, task: TaskId, run: u32) {
    let replay = Replay { task, run, run_at: None };
    let order = ReplayTasks { tenant: own(), tasks: vec![replay], payload: None };
    assert_eq!(harness.store().replay(order).await.unwrap(), [Controlled::Done]);
}

pub async fn without_a_sink_nothing_is_kept(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    subscribe_to_all(&harness, "late").await;
    assert_eq!(events(&harness, "late").await, []);
    harness.submit_one(harness.task("email")).await;
    assert_eq!(kinds(&harness, "late").await, [TaskCreated], "from now on");
}

pub async fn every_change_of_a_task_has_its_event(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, Outcome::Release).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, retry()).await;
    let order = RetryTasks { tenant: own(), tasks: vec![id] };
    harness.store().retry(order).await.unwrap();
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    replay(&harness, id, 1).await;
    let change = TaskChange { payload: Some(Arc::from("[]")), ..TaskChange::default() };
    let edit = EditTask { tenant: own(), task: id, change };
    assert_eq!(harness.store().edit(edit).await.unwrap(), Controlled::Done);
    let lease = harness.claim_one(session).await;
    let progress = Progress::new(1, Some(2));
    let item = ReportItem { task: id, epoch: lease.epoch, progress: Some(progress), log: None };
    harness.store().report(Report { session, items: vec![item] }).await.unwrap();
    harness.finish_one(session, &lease, success()).await;
    let order = DeleteTasks { tenant: own(), tasks: vec![id], before: None };
    assert_eq!(harness.store().delete(order).await.unwrap(), [Controlled::Done]);
    let expected = [
        (TaskCreated, 1, 0),
        (TaskStarted, 1, 1),
        (TaskReleased, 1, 1),
        (TaskStarted, 1, 2),
        (TaskRetried, 1, 2),
        (TaskEdited, 1, 2),
        (TaskStarted, 1, 3),
        (TaskFailed, 1, 3),
        (TaskReplayed, 2, 3),
        (TaskEdited, 2, 3),
        (TaskStarted, 2, 4),
        (TaskProgressed, 2, 4),
        (TaskSucceeded, 2, 4),
        (TaskDeleted, 2, 4),
    ];
    assert_eq!(without_repeats(of_task(&harness, "all", id).await), expected);
    let all = events(&harness, "all").await;
    let lane = harness.task("email").lane;
    assert!(all.iter().all(|event| event.place == (&lane).into() && event.at == harness.now()));
}

/// Edits and reports that are repeated, because an answer was lost, have their event again.
fn without_repeats(mut events: Vec<(EventKind, u32, u32)>) -> Vec<(EventKind, u32, u32)> {
    events.dedup_by(|one, other| one == other && matches!(one.0, TaskEdited | TaskProgressed));
    events
}

pub async fn what_is_handed_off_is_created_and_started(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    let task = harness.task("email");
    let offer = Some(harness.next_claim(session, 1));
    let batch = Submit { tasks: vec![task.clone()], offer };
    harness.store().submit(batch).await.unwrap();
    let expected = [(TaskCreated, 1, 0), (TaskStarted, 1, 1)];
    assert_eq!(of_task(&harness, "all", task.id).await, expected);
}

pub async fn a_lost_worker_shows(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.lose("email", 10).await;
    let events = of_task(&harness, "all", id).await;
    let losses: Vec<_> = events.iter().filter(|(kind, ..)| *kind == TaskLost).collect();
    assert_eq!(losses.len(), 9);
    assert_eq!(events.last(), Some(&(TaskFailed, 1, 10)), "the last loss ends the task");
}

pub async fn a_cancel_tells_of_the_epoch_that_it_raises(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    let running = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    let waiting = harness.submit_one(harness.task("email")).await;
    cancel(&harness, running).await;
    cancel(&harness, waiting).await;
    assert_eq!(of_task(&harness, "all", running).await.last(), Some(&(TaskCancelled, 1, 2)));
    assert_eq!(of_task(&harness, "all", waiting).await.last(), Some(&(TaskCancelled, 1, 0)));
}

pub async fn a_workflow_and_its_children_show(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["a", "b"]).await;
    let new = workflow(&harness, &[("a", &[]), ("b", &[("a", Condition::Success)])]);
    let answer = harness.store().submit_workflow(new.clone()).await.unwrap();
    assert_eq!(answer, SubmittedWorkflow::Stored { at: harness.now() });
    end(&harness, session, "a", success()).await;
    end(&harness, session, "b", success()).await;
    let child = new.tasks[1].id;
    let expected =
        [(TaskCreated, 1, 0), (TaskUnblocked, 1, 0), (TaskStarted, 1, 1), (TaskSucceeded, 1, 1)];
    assert_eq!(of_task(&harness, "all", child).await, expected);
    let subject = new.id.to_string();
    let about_it = |event: &Event| match &event.about {
        About::Other { subject: about, data } if *about == subject => {
            Some((event.kind, data.clone()))
        }
        _ => None,
    };
    let told: Vec<_> = events(&harness, "all").await.iter().filter_map(about_it).collect();
    assert_eq!(
        told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [WorkflowStarted, WorkflowEnded]
    );
    let data: serde_json::Value = serde_json::from_str(&told[1].1).unwrap();
    assert_eq!(data["status"], "SUCCESS");
}

pub async fn what_comes_with_an_outcome_shows(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    let parent = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let dependencies = vec![Dependency { parent, on: Condition::Success }];
    let links = Some(Arc::new(Links { dependencies, ..Links::default() }));
    let child = NewTask { links, ..harness.task("email") };
    let id = child.id;
    let finish =
        Finish { then: Some(Arc::from([child])), ..Finish::new(parent, lease.epoch, success()) };
    assert_eq!(harness.finish(session, vec![finish]).await, [Finished::Done]);
    let last = of_task(&harness, "all", parent).await.pop();
    assert_eq!(last, Some((TaskSucceeded, 1, 1)));
    let expected = [(TaskCreated, 1, 0), (TaskUnblocked, 1, 0)];
    assert_eq!(of_task(&harness, "all", id).await, expected, "its parent ends with it");
}

pub async fn a_change_that_is_refused_has_no_event(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    let task = harness.task("email");
    harness.submit_one(task.clone()).await;
    harness.submit(std::slice::from_ref(&task)).await;
    let lease = harness.claim_one(session).await;
    assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::Done);
    assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::Done, "a repeat");
    assert_eq!(harness.finish_one(session, &lease, fail()).await, Finished::LeaseLost);
    cancel(&harness, task.id).await;
    let expected = [(TaskCreated, 1, 0), (TaskStarted, 1, 1), (TaskSucceeded, 1, 1)];
    assert_eq!(of_task(&harness, "all", task.id).await, expected);
}

pub async fn only_what_is_wanted_is_kept(harness: Harness) {
    let queue = |name: &str| QueueName::new(name).unwrap();
    let foreign = TenantName::new("other").unwrap();
    let outcomes = Subscription::to(Kinds::OUTCOMES);
    let by = |name: &'static str, subscription| (name, subscription);
    let wanted = [
        by("kinds", outcomes.clone()),
        by("tenant", Subscription { tenant: Some(foreign.clone()), ..outcomes.clone() }),
        by("queue", Subscription { queue: Some(queue("mail")), ..outcomes.clone() }),
        by("type", Subscription { task_type: Some(TypeName::new("pdf").unwrap()), ..outcomes }),
    ];
    for (name, subscription) in wanted {
        subscribe(&harness, name, subscription).await;
    }
    let session = harness.session(&["email", "pdf"]).await;
    let mut made = vec![harness.task("email"), harness.task("email"), harness.task("pdf")];
    made[0].lane.queue = queue("mail");
    made[1].lane.tenant = foreign;
    for task in &made {
        harness.submit_one(task.clone()).await;
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, success()).await;
    }
    for (name, expected) in
        [("kinds", vec![0, 1, 2]), ("tenant", vec![1]), ("queue", vec![0]), ("type", vec![2])]
    {
        let found: Vec<_> = events(&harness, name).await.iter().map(Event::task).collect();
        let expected: Vec<_> = expected.into_iter().map(|n: usize| Some(made[n].id)).collect();
        assert_eq!(found, expected, "by {name}");
        assert_eq!(kinds(&harness, name).await, vec![TaskSucceeded; expected.len()]);
    }
}

pub async fn tasks_of_the_system_have_none(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["duly.bulk"]).await;
    let mut task = harness.task("duly.bulk");
    task.lane.queue = QueueName::system();
    harness.submit_one(task).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(events(&harness, "all").await, []);
}

pub async fn queues_and_settings_show(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let mail = QueueName::new("mail").unwrap();
    let pause = PauseQueue { tenant: own(), queue: mail.clone(), note: "a note".to_owned() };
    harness.store().pause_queue(pause.clone()).await.unwrap();
    harness.store().pause_queue(pause).await.unwrap();
    harness.store().resume_queue(&own(), &mail).await.unwrap();
    harness.store().resume_queue(&own(), &mail).await.unwrap();
    let put = PutSettings {
        expected: 0,
        settings: Settings { retries: 7, ..Settings::default() },
        comment: None,
    };
    harness.store().put_settings(put).await.unwrap();
    let expected = [EventKind::QueuePaused, EventKind::QueueResumed, SettingsChanged];
    assert_eq!(kinds(&harness, "all").await, expected, "what is so already has no event");
}

pub async fn slots_show(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let schedule = change(&harness, put(&harness, "nightly", 1)).await;
    let slots = [1, 2].map(|n| schedule.position.plus(Duration::from_secs(n)));
    harness.advance(Duration::from_secs(5));
    let task = task_of(&harness, slots[0]);
    let ran = task.id;
    let mut order = decide(&schedule, Overlap::Allow, &[task]);
    order.moves = Some((schedule.position, slots[1]));
    order.slots.push((slots[1], SlotOrder::Skip(SkipReason::Missed)));
    outcomes(&harness, &order).await;
    let expected = [TaskCreated, ScheduleFired, ScheduleSkipped];
    let events = events(&harness, "all").await;
    assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), expected);
    assert_eq!(events[0].task(), Some(ran));
    let About::Other { subject, data } = &events[1].about else { panic!("{:?}", events[1]) };
    assert_eq!(subject, "nightly");
    assert!(data.contains(&ran.to_string()), "{data}");
}

pub async fn a_sweep_tells_of_what_it_deletes(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let ids = [
        harness.submit_one(harness.task("email")).await,
        harness.submit_one(harness.task("email")).await,
    ];
    for lease in harness.claim(session, 10).await {
        harness.finish_one(session, &lease, success()).await;
    }
    subscribe(&harness, "gone", Subscription::to([TaskDeleted].into_iter().collect())).await;
    // A day that is over could be dropped as a whole.
    harness.advance(Duration::from_secs(3 * 24 * 60 * 60));
    let cutoffs = Cutoffs { success: Some(harness.now()), ..Cutoffs::default() };
    let mut sweep = Sweep { cutoffs, ..Sweep::default() };
    loop {
        sweep.after = harness.store().sweep(sweep.clone()).await.unwrap().next;
        if sweep.after.is_none() {
            break;
        }
    }
    let mut gone: Vec<_> = events(&harness, "gone").await.iter().filter_map(Event::task).collect();
    gone.sort_unstable();
    assert_eq!(gone, ids);
}

pub async fn pages_of_any_size_show_the_same(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let session = harness.session(&["email"]).await;
    for _ in 0..3 {
        let tasks: Vec<NewTask> = (0..4).map(|_| harness.task("email")).collect();
        harness.submit(&tasks).await;
        for lease in harness.claim(session, 10).await {
            harness.finish_one(session, &lease, success()).await;
        }
    }
    let all = stored(&harness, "all", 100).await;
    assert_eq!(all.len(), 3 * 4 * 3);
    let names = |events: &[StoredEvent]| -> Vec<_> {
        events.iter().map(|it| (it.position.number, it.position.index, it.event.clone())).collect()
    };
    assert_eq!(names(&stored(&harness, "all", 1).await), names(&all));
    for (seen, event) in all.iter().enumerate() {
        let text = event.position.to_string();
        let after = Some(text.parse().unwrap());
        let Events::Page(page) = read(&harness, "all", after).await else { panic!("at {text}") };
        assert_eq!(names(&page.events), names(&all[seen + 1..]), "behind {text}");
    }
}

pub async fn a_large_batch_is_kept_in_order(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let tasks: Vec<NewTask> = (0..500).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let session = harness.session(&["email"]).await;
    let leases = harness.claim(session, 500).await;
    assert!(leases.len() * 2 < EVENTS_PER_ROW * 2);
    let found = events(&harness, "all").await;
    assert_eq!(found.len(), tasks.len() + leases.len());
    for task in &tasks {
        let own: Vec<_> = found.iter().filter(|it| it.task() == Some(task.id)).collect();
        assert!(own.windows(2).all(|it| it[0].kind < it[1].kind), "{own:?}");
    }
}

pub async fn they_outlive_a_restart(mut harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.crash().await;
    harness.submit_one(harness.task("email")).await;
    assert_eq!(events(&harness, "all").await.len(), 2);
    assert_eq!(of_task(&harness, "all", id).await, [(TaskCreated, 1, 0)]);
}

pub async fn tasks_are_read_by_their_ids(harness: Harness) {
    let mut tasks = vec![harness.task("email"), harness.task("email")];
    tasks[1].lane.tenant = TenantName::new("other").unwrap();
    harness.submit(&tasks).await;
    let unknown = harness.task("email").id;
    let wanted = vec![tasks[0].id, tasks[1].id, unknown];
    let found = harness.store().tasks_of(wanted.clone(), false).await.unwrap();
    let ids: Vec<_> = found.iter().map(|task| task.id).collect();
    assert_eq!(ids, [tasks[0].id, tasks[1].id]);
    let without =
        |task: duly_core::task::Task| duly_core::task::Task { payload: "null".into(), ..task };
    assert_eq!(found[0], without(harness.get(tasks[0].id).await));
    let whole = harness.store().tasks_of(wanted, true).await.unwrap();
    assert_eq!(whole[0], harness.get(tasks[0].id).await);
}

pub async fn behind_the_end_is_what_comes_next(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    harness.submit_one(harness.task("email")).await;
    let end = harness.store().end_of_events().await.unwrap();
    let behind = async || {
        let found = read(&harness, "all", Some(end.clone())).await;
        let Events::Page(page) = found else { panic!("{found:?}") };
        page.events.iter().filter_map(|it| it.event.task()).collect::<Vec<_>>()
    };
    assert_eq!(behind().await, []);
    let next = harness.submit_one(harness.task("email")).await;
    assert_eq!(behind().await, [next]);
}

pub async fn a_hint_follows_an_event(harness: Harness) {
    subscribe_to_all(&harness, "all").await;
    let store = harness.store();
    // What came with the sink itself may have left a hint.
    drop(tokio::time::timeout(Duration::from_millis(50), store.event_hint()).await);
    harness.submit_one(harness.task("email")).await;
    let hint = tokio::time::timeout(Duration::from_secs(10), store.event_hint()).await;
    assert!(hint.is_ok(), "a hint comes soon");
}

pub async fn concurrent_writers_lose_none_and_keep_each_tasks_order(harness: Harness) {
    const WRITERS: usize = 8;
    const TASKS: usize = 25;
    subscribe_to_all(&harness, "all").await;
    let run = async |_| {
        let session = harness.session(&["email"]).await;
        for _ in 0..TASKS {
            harness.submit_one(harness.task("email")).await;
            for lease in harness.claim(session, 3).await {
                harness.finish_one(session, &lease, Outcome::Release).await;
            }
        }
    };
    let reader = async {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let Events::Page(page) = read(&harness, "all", after).await else { panic!("gone") };
            seen.extend(page.events);
            after = Some(page.next);
            let created = seen.iter().filter(|it| it.event.kind == TaskCreated).count();
            let releases = seen.iter().filter(|it| it.event.kind == TaskReleased).count();
            let starts = seen.iter().filter(|it| it.event.kind == TaskStarted).count();
            if created == WRITERS * TASKS && starts == releases && !page.more {
                return (seen, after);
            }
            tokio::task::yield_now().await;
        }
    };
    let writers = futures_util::future::join_all((0..WRITERS).map(run));
    let ((mut seen, mut after), _) = futures_util::future::join(reader, writers).await;
    loop {
        let Events::Page(rest) = read(&harness, "all", after).await else { panic!("gone") };
        seen.extend(rest.events);
        if !rest.more {
            break;
        }
        after = Some(rest.next);
    }
    check_order(&harness, &seen).await;
}

/// Each event once, and those of each task in the order of its changes, up to its present state.
async fn check_order(harness: &Harness, seen: &[StoredEvent]) {
    use std::collections::{BTreeMap, BTreeSet};
    let names: BTreeSet<_> =
        seen.iter().map(|it| (it.position.number, it.position.index)).collect();
    assert_eq!(names.len(), seen.len(), "no event twice");
    let mut by_task: BTreeMap<TaskId, Vec<(EventKind, u32)>> = BTreeMap::new();
    for it in seen {
        let About::Task { id, epoch, .. } = it.event.about else { continue };
        by_task.entry(id).or_default().push((it.event.kind, epoch));
    }
    for (id, events) in by_task {
        let epoch = harness.get(id).await.epoch;
        let mut expected = vec![(TaskCreated, 0)];
        expected
            .extend((1..=epoch).flat_map(|epoch| [(TaskStarted, epoch), (TaskReleased, epoch)]));
        assert_eq!(events, expected, "{id}");
    }
}
