//! One order for many tasks, through lost answers, stops and running tasks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::HashSet;
use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::{BULK_DELETE_STEP, BULK_STEP};
use duly_core::name::TenantName;
use duly_core::ports::store::{ListDead, ListTasks};
use duly_core::state::Status;
use duly_core::submit::Draft;
use duly_core::task::Task;

use crate::world::{World, draft, finish};

const HOUR: Duration = Duration::from_secs(3600);
/// More than two steps.
const TASKS: usize = 2 * BULK_STEP as usize + 7;

fn tenant() -> TenantName {
    TenantName::default_tenant()
}

fn order(action: BulkAction) -> BulkOrder {
    BulkOrder {
        action,
        filter: "type:waits".to_owned(),
        dead_letters: false,
        ids: None,
        reason: String::new(),
        per_second: None,
    }
}

async fn many(world: &World, count: usize) {
    let specs = (0..count).map(|_| draft("waits").check().unwrap()).collect();
    world.engine.submit(&tenant(), specs).await.unwrap();
}

/// Fails as many tasks for good as wait for the worker.
async fn fail(world: &World, mut count: usize) {
    while count > 0 {
        let leases = world.source.claim(count).await.unwrap();
        let error = || duly_core::task::Failure::new("BROKEN", "it broke");
        let fail = |lease| finish(lease, duly_core::lease::Outcome::Fail { error: error() });
        world.source.finish(leases.iter().map(fail).collect()).await.unwrap();
        count -= leases.len();
    }
}

async fn dead(world: &World) -> Vec<TaskId> {
    let (tenant, filter) = (tenant(), Filter::default());
    let page = ListDead { tenant, filter, before: None, limit: 1_000 };
    let found = world.engine.dead_letters(page).await.unwrap();
    found.tasks.iter().map(|task| task.id).collect()
}

async fn start(world: &World, order: &BulkOrder) -> TaskId {
    world.engine.start_bulk(&tenant(), order, None).await.unwrap().task.id
}

async fn all(world: &World) -> Vec<Task> {
    let filter = Filter::parse("type:waits", world.now().await).unwrap();
    let mut page = ListTasks { tenant: tenant(), filter, before: None, limit: 200 };
    let mut tasks = Vec::new();
    loop {
        let found = world.engine.list(page.clone()).await.unwrap();
        tasks.extend(found.tasks);
        page.before = found.next_before;
        if page.before.is_none() {
            return tasks;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_repeats_nothing_and_leaves_nothing_out() {
    let world = World::new().await;
    many(&world, TASKS).await;
    world.faults.lose_steps(2);
    let id = start(&world, &order(BulkAction::Cancel)).await;
    let ended = world.wait(id, HOUR).await;
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    assert!(ended.attempt() > 1, "an attempt failed on the way");
    let progress = ended.progress.unwrap().progress;
    assert_eq!((progress.done, progress.total), (TASKS as u64, Some(TASKS as u64)));
    assert_eq!(ended.result.as_deref(), Some(&*format!(r#"{{"done":{TASKS},"skipped":0}}"#)));
    let tasks = all(&world).await;
    assert_eq!(tasks.len(), TASKS);
    assert!(tasks.iter().all(|task| task.status == Status::Cancelled));
    let replay = start(
        &world,
        &BulkOrder {
            filter: "type:waits status:CANCELLED".to_owned(),
            ..order(BulkAction::Replay)
        },
    )
    .await;
    world.faults.lose_steps(3);
    assert_eq!(world.wait(replay, HOUR).await.status, Status::Success);
    let runs: HashSet<u32> = all(&world).await.iter().map(|task| task.run).collect();
    assert_eq!(runs, HashSet::from([2]), "each of them once");
}

#[tokio::test(start_paused = true)]
async fn an_order_leaves_tasks_alone_that_come_after_it() {
    let world = World::new().await;
    many(&world, 3).await;
    let (tenant, pause) = (tenant(), duly_core::name::QueueName::system());
    // The queue is there once a task was submitted to it.
    let first = start(&world, &order(BulkAction::Retry)).await;
    world.wait(first, HOUR).await;
    let order_to_pause = duly_core::ports::store::PauseQueue {
        tenant: tenant.clone(),
        queue: pause.clone(),
        note: String::new(),
    };
    world.engine.pause_queue(order_to_pause).await.unwrap().unwrap();
    let id = start(&world, &order(BulkAction::Cancel)).await;
    crate::world::pass(Duration::from_secs(1)).await;
    many(&world, 2).await;
    world.engine.resume_queue(&tenant, &pause).await.unwrap().unwrap();
    let ended = world.wait(id, HOUR).await;
    assert_eq!(ended.progress.unwrap().progress.done, 3);
    let waiting = all(&world).await.iter().filter(|task| task.status == Status::Pending).count();
    assert_eq!(waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_task_was_cancelled_is_told() {
    let world = World::new().await;
    let task = world.submit(draft("echo")).await.task;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    let cancel = BulkOrder { filter: "type:echo".to_owned(), ..order(BulkAction::Cancel) };
    let id = start(&world, &cancel).await;
    let gone = tokio::time::timeout(HOUR, world.source.taken_back()).await.unwrap();
    assert_eq!((gone[0].task, gone[0].epoch), (task.id, lease.epoch));
    world.wait(id, HOUR).await;
    let late = world.source.finish(vec![finish(&lease, crate::world::success())]).await.unwrap();
    assert_eq!(late, [duly_core::lease::Finished::LeaseLost]);
}

#[tokio::test(start_paused = true)]
async fn replays_are_spread_from_when_they_begin() {
    let world = World::new().await;
    many(&world, 4).await;
    let cancel = start(&world, &order(BulkAction::Cancel)).await;
    world.wait(cancel, HOUR).await;
    let begin = world.now().await;
    let spread = BulkOrder {
        filter: "type:waits status:CANCELLED".to_owned(),
        per_second: Some(2.0),
        ..order(BulkAction::Replay)
    };
    let id = start(&world, &spread).await;
    world.wait(id, HOUR).await;
    let mut times: Vec<_> = all(&world).await.iter().map(|task| task.run_at).collect();
    times.sort();
    assert!(times[0] >= begin);
    for (earlier, later) in times.iter().zip(&times[1..]) {
        assert_eq!(later.since(*earlier), Duration::from_millis(500));
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_means_only_tasks_that_wait_for_one() {
    let world = World::new().await;
    many(&world, 3).await;
    let failing = Draft { retries: Some(5.0), ..draft("echo") };
    world.submit(failing).await;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    let error = duly_core::task::Failure::new("BROKEN", "it broke");
    let retry = duly_core::lease::Outcome::Retry { error, entropy: 0, after: Some(HOUR) };
    world.source.finish(vec![finish(&lease, retry)]).await.unwrap();
    let order = BulkOrder { filter: String::new(), ..order(BulkAction::Retry) };
    let filter = order.action.filter("", world.now().await).unwrap();
    let preview = world.engine.preview_bulk(&tenant(), &order, filter).await.unwrap();
    assert_eq!((preview.count, preview.more, preview.sample), (1, false, vec![lease.task]));
    let id = start(&world, &order).await;
    let ended = world.wait(id, HOUR).await;
    assert_eq!(ended.progress.unwrap().progress.total, Some(1));
    assert_eq!(world.source.claim(1).await.unwrap()[0].task, lease.task);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_deleted_once_each_though_answers_are_lost() {
    const COUNT: usize = 2 * BULK_DELETE_STEP as usize + 7;
    let world = World::new().await;
    let specs = (0..COUNT).map(|_| draft("echo").check().unwrap()).collect();
    world.engine.submit(&tenant(), specs).await.unwrap();
    fail(&world, COUNT).await;
    assert_eq!(dead(&world).await.len(), COUNT);
    world.submit(draft("echo")).await;
    let lease = world.source.claim(1).await.unwrap().remove(0);
    world.source.finish(vec![finish(&lease, crate::world::success())]).await.unwrap();
    world.faults.lose_steps(2);
    let purge =
        BulkOrder { filter: String::new(), dead_letters: true, ..order(BulkAction::Delete) };
    let ended = world.wait(start(&world, &purge).await, HOUR).await;
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    assert!(ended.attempt() > 1, "an attempt failed on the way");
    let progress = ended.progress.unwrap().progress;
    assert_eq!((progress.done, progress.total), (COUNT as u64, Some(COUNT as u64)));
    assert!(dead(&world).await.is_empty());
    assert_eq!(world.get(lease.task).await.status, Status::Success, "it is no dead letter");
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_selected_by_the_time_of_their_failure() {
    let world = World::new().await;
    let early = world.submit(draft("echo")).await.task.id;
    fail(&world, 1).await;
    let late = world.submit(draft("echo")).await.task.id;
    crate::world::pass(Duration::from_secs(10)).await;
    fail(&world, 1).await;
    let replay = BulkOrder {
        filter: "since:5s".to_owned(),
        dead_letters: true,
        ..order(BulkAction::Replay)
    };
    let ended = world.wait(start(&world, &replay).await, HOUR).await;
    let progress = ended.progress.unwrap().progress;
    assert_eq!((progress.done, progress.total), (1, None), "such a total is not counted");
    assert_eq!(dead(&world).await, [early]);
    assert_eq!(world.get(late).await.run, 2);
}

crate::stores::with_lost_hints!(
    all: a_lost_answer_repeats_nothing_and_leaves_nothing_out,
    an_order_leaves_tasks_alone_that_come_after_it,
    a_worker_whose_task_was_cancelled_is_told,
    replays_are_spread_from_when_they_begin,
    a_retry_means_only_tasks_that_wait_for_one,
    dead_letters_are_deleted_once_each_though_answers_are_lost,
    dead_letters_are_selected_by_the_time_of_their_failure
);
