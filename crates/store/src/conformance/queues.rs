//! Queues: pausing them, what is in them, and where a task stands.

use std::time::Duration;

use duly_core::limits::{COUNT_ROWS, QUEUE_LANES, STORE_BATCH};
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    Claim, Controlled, Counted, DeleteTasks, ListQueues, Pause, PauseQueue, QueueState, Submit,
};
use duly_core::state::Status;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{fail, ids, success};

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn exactly(count: u32) -> Counted {
    Counted { count, more: false }
}

fn task_in(harness: &Harness, name: &str, task_type: &str) -> NewTask {
    let mut task = harness.task(task_type);
    task.lane.queue = queue(name);
    task
}

async fn pause(harness: &Harness, name: &str, note: &str) -> bool {
    let tenant = TenantName::default_tenant();
    let order = PauseQueue { tenant, queue: queue(name), note: note.to_owned() };
    harness.store().pause_queue(order).await.unwrap()
}

async fn resume(harness: &Harness, name: &str) -> bool {
    harness.store().resume_queue(&TenantName::default_tenant(), &queue(name)).await.unwrap()
}

async fn state(harness: &Harness, name: &str) -> QueueState {
    let tenant = TenantName::default_tenant();
    let state = harness.store().queue(&tenant, &queue(name)).await.unwrap();
    state.expect("a task was submitted to it")
}

pub async fn nothing_of_a_paused_queue_is_granted(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let paused = harness.submit_one(task_in(&harness, "mail", "email")).await;
    let other = harness.submit_one(task_in(&harness, "other", "email")).await;
    assert!(pause(&harness, "mail", "the relay is down").await);
    let answer = harness.ask(harness.next_claim(session, 10)).await;
    assert_eq!(ids(&answer.leases), [other]);
    assert_eq!(answer.next_due, None, "no worker is told to come back for it");
    let later = harness.session(&["email"]).await;
    assert!(harness.claim(later, 10).await.is_empty(), "nor does a new session get it");
    assert!(resume(&harness, "mail").await);
    assert_eq!(ids(&harness.claim(session, 10).await), [paused]);
}

pub async fn nothing_is_handed_over_in_a_paused_queue(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(task_in(&harness, "mail", "email")).await;
    harness.claim_one(session).await;
    pause(&harness, "mail", "").await;
    let claim: Claim = harness.next_claim(session, 10);
    let tasks = vec![task_in(&harness, "mail", "email")];
    let batch = Submit { tasks, offer: Some(claim) };
    assert_eq!(harness.store().submit(batch).await.unwrap(), [harness.stored()]);
}

pub async fn a_new_type_in_a_paused_queue_waits_too(harness: Harness) {
    let session = harness.session(&["email", "letter"]).await;
    harness.submit_one(task_in(&harness, "mail", "email")).await;
    pause(&harness, "mail", "").await;
    let letter = harness.submit_one(task_in(&harness, "mail", "letter")).await;
    assert!(harness.claim(session, 10).await.is_empty());
    resume(&harness, "mail").await;
    assert!(ids(&harness.claim(session, 10).await).contains(&letter));
}

pub async fn what_runs_in_a_paused_queue_goes_on(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(task_in(&harness, "mail", "email")).await;
    let lease = harness.claim_one(session).await;
    pause(&harness, "mail", "").await;
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.get(id).await.status, Status::Success);
}

pub async fn a_pause_keeps_its_beginning(harness: Harness) {
    harness.submit_one(task_in(&harness, "mail", "email")).await;
    let since = harness.now();
    pause(&harness, "mail", "the relay is down").await;
    harness.advance(Duration::from_secs(5));
    pause(&harness, "mail", "still down").await;
    let expected = Pause { since, note: "still down".to_owned() };
    assert_eq!(state(&harness, "mail").await.paused, Some(expected));
    resume(&harness, "mail").await;
    assert_eq!(state(&harness, "mail").await.paused, None);
    assert!(resume(&harness, "mail").await, "twice is the same as once");
}

pub async fn a_pause_outlives_a_restart(mut harness: Harness) {
    let id = harness.submit_one(task_in(&harness, "mail", "email")).await;
    pause(&harness, "mail", "").await;
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    assert!(harness.claim(session, 10).await.is_empty());
    resume(&harness, "mail").await;
    assert_eq!(harness.claim_one(session).await.task, id);
}

pub async fn tenants_pause_their_own_queues(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let mut foreign = task_in(&harness, "mail", "email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let foreign = harness.submit_one(foreign).await;
    assert!(pause(&harness, "mail", "").await, "although only another tenant has tasks in it");
    harness.submit_one(task_in(&harness, "mail", "email")).await;
    assert_eq!(ids(&harness.claim(session, 10).await), [foreign]);
    assert_eq!(state(&harness, "mail").await.waiting, exactly(1));
}

pub async fn an_unknown_queue_is_no_queue(harness: Harness) {
    assert!(!resume(&harness, "nowhere").await);
    let tenant = TenantName::default_tenant();
    assert_eq!(harness.store().queue(&tenant, &queue("nowhere")).await.unwrap(), None);
}

pub async fn a_queue_can_be_paused_before_its_first_task(mut harness: Harness) {
    harness.submit_one(task_in(&harness, "other", "letter")).await;
    let since = harness.now();
    assert!(pause(&harness, "mail", "not yet").await);
    let paused = state(&harness, "mail").await;
    assert_eq!(paused.paused, Some(Pause { since, note: "not yet".to_owned() }));
    assert_eq!((paused.waiting, paused.running), (exactly(0), exactly(0)));
    let tenant = TenantName::default_tenant();
    for (limit, after, names) in [
        (10, None, vec!["mail", "other"]),
        (1, None, vec!["mail"]),
        (1, Some("mail"), vec!["other"]),
    ] {
        let (tenant, after) = (tenant.clone(), after.map(queue));
        let page = ListQueues { tenant, after, limit, count_to: COUNT_ROWS };
        let found = harness.store().queues(page).await.unwrap().queues;
        assert_eq!(found.iter().map(|it| it.queue.as_str()).collect::<Vec<_>>(), names);
    }
    harness.crash().await;
    let session = harness.session(&["email"]).await;
    let offer = Some(harness.next_claim(session, 10));
    let tasks = vec![task_in(&harness, "mail", "email")];
    let id = tasks[0].id;
    let handed = harness.store().submit(Submit { tasks, offer }).await.unwrap();
    assert_eq!(handed, [harness.stored()], "nothing is handed over");
    assert!(harness.claim(session, 10).await.is_empty());
    assert!(resume(&harness, "mail").await);
    assert_eq!(harness.claim_one(session).await.task, id);
    assert!(pause(&harness, "empty", "").await);
    resume(&harness, "empty").await;
    assert_eq!(harness.store().queue(&tenant, &queue("empty")).await.unwrap(), None);
}

pub async fn upper_and_lower_case_are_two_queues(harness: Harness) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(task_in(&harness, "Mail", "email")).await;
    let lower = harness.submit_one(task_in(&harness, "mail", "email")).await;
    harness.submit_one(task_in(&harness, "Zoo", "Email")).await;
    assert!(pause(&harness, "Mail", "").await);
    assert_eq!(harness.claim_one(session).await.task, lower);
    let tenant = TenantName::default_tenant();
    let page = ListQueues { tenant, after: None, limit: 10, count_to: COUNT_ROWS };
    let found = harness.store().queues(page).await.unwrap().queues;
    let names: Vec<_> = found.iter().map(|it| it.queue.as_str()).collect();
    assert_eq!(names, ["Mail", "Zoo", "mail"]);
}

pub async fn each_queue_tells_what_is_in_it(harness: Harness) {
    let session = harness.session(&["email"]).await;
    for _ in 0..3 {
        harness.submit_one(task_in(&harness, "mail", "email")).await;
    }
    let leases = harness.claim(session, 2).await;
    harness.finish_one(session, &leases[0], fail()).await;
    let since = harness.now();
    harness.advance(Duration::from_secs(5));
    let later = NewTask {
        run_at: harness.now().plus(Duration::from_secs(60)),
        ..task_in(&harness, "mail", "letter")
    };
    harness.submit_one(later).await;
    harness.submit_one(task_in(&harness, "other", "email")).await;
    let expected = QueueState {
        queue: queue("mail"),
        paused: None,
        waiting: exactly(2),
        due: exactly(1),
        running: exactly(1),
        dead: exactly(1),
        oldest_due: Some(since),
    };
    assert_eq!(state(&harness, "mail").await, expected);
    harness.finish_one(session, &leases[1], success()).await;
    harness.claim(session, 10).await;
    let state = state(&harness, "mail").await;
    assert_eq!((state.due, state.running, state.oldest_due), (exactly(0), exactly(1), None));
}

pub async fn a_task_whose_id_came_again_is_counted_once(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let again = task_in(&harness, "mail", "email");
    harness.submit(&[again.clone(), task_in(&harness, "mail", "email")]).await;
    let leases = harness.claim(session, 2).await;
    let ended = leases.iter().find(|lease| lease.task == again.id).expect("both were granted");
    harness.finish_one(session, ended, success()).await;
    let (tenant, tasks) = (TenantName::default_tenant(), vec![again.id]);
    let order = DeleteTasks { tenant, tasks, before: None };
    assert_eq!(harness.store().delete(order).await.unwrap(), [Controlled::Done]);
    assert_eq!(harness.submit(std::slice::from_ref(&again)).await, [harness.stored()]);
    let lease = harness.claim_one(session).await;
    assert_eq!(lease.task, again.id);
    assert_eq!(state(&harness, "mail").await.running, exactly(2));
    harness.crash().await;
    let workers = harness.store().workers().await.unwrap();
    let worker = workers.iter().find(|worker| worker.opened.id == session).expect("it is open");
    assert_eq!(worker.leases, 2);
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(state(&harness, "mail").await.running, exactly(1));
}

pub async fn queues_are_listed_by_name(harness: Harness) {
    for name in ["mail", "billing", "video", "mail"] {
        harness.submit_one(task_in(&harness, name, "email")).await;
    }
    let mut foreign = task_in(&harness, "foreign", "email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    harness.submit_one(foreign).await;
    let page = |after: Option<&str>| ListQueues {
        tenant: TenantName::default_tenant(),
        after: after.map(queue),
        limit: 2,
        count_to: COUNT_ROWS,
    };
    let first = harness.store().queues(page(None)).await.unwrap();
    let names: Vec<_> = first.queues.iter().map(|it| it.queue.as_str()).collect();
    assert_eq!((names, first.next_after), (vec!["billing", "mail"], Some(queue("mail"))));
    assert_eq!(first.queues[1], state(&harness, "mail").await);
    let second = harness.store().queues(page(Some("mail"))).await.unwrap();
    let names: Vec<_> = second.queues.iter().map(|it| it.queue.as_str()).collect();
    assert_eq!((names, second.next_after), (vec!["video"], None));
}

pub async fn counting_ends_at_the_bound(harness: Harness) {
    let bound = 5;
    let tasks: Vec<_> = (0..=bound).map(|_| task_in(&harness, "mail", "email")).collect();
    assert!(tasks.len() < STORE_BATCH);
    let count = async |count_to| {
        let tenant = TenantName::default_tenant();
        let page = ListQueues { tenant, after: None, limit: 10, count_to };
        let queues = harness.store().queues(page).await.unwrap().queues;
        (queues[0].waiting, queues[0].due)
    };
    harness.submit(&tasks[..5]).await;
    assert_eq!(count(bound).await, (exactly(5), exactly(5)));
    harness.submit(&tasks[5..]).await;
    let least = Counted { count: 5, more: true };
    assert_eq!(count(bound).await, (least, least));
}

pub async fn a_place_tells_what_comes_before(harness: Harness) {
    let tenant = TenantName::default_tenant();
    let first = harness.submit_one(harness.task("email")).await;
    let second = harness.submit_one(harness.task("letter")).await;
    let urgent = harness.submit_one(harness.task_at("email", 9)).await;
    harness.submit_one(harness.task_in("email", Duration::from_secs(60))).await;
    harness.submit_one(task_in(&harness, "other", "email")).await;
    let ahead = async |id| {
        let place = harness.store().place(&tenant, id).await.unwrap().expect("it waits");
        (place.ahead, place.paused.is_some())
    };
    assert_eq!(ahead(urgent).await, (exactly(0), false));
    assert_eq!(ahead(first).await, (exactly(1), false));
    assert_eq!(ahead(second).await, (exactly(2), false));
    pause(&harness, "default", "").await;
    assert_eq!(ahead(first).await, (exactly(1), true));
}

pub async fn only_a_waiting_task_has_a_place(harness: Harness) {
    let tenant = TenantName::default_tenant();
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().place(&other, id).await.unwrap(), None);
    let lease = harness.claim_one(session).await;
    assert_eq!(harness.store().place(&tenant, id).await.unwrap(), None);
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.store().place(&tenant, id).await.unwrap(), None);
}

/// One task for each of as many types as are looked at.
async fn fill(harness: &Harness, name: &str) {
    let tasks = (0..QUEUE_LANES).map(|number| task_in(harness, name, &format!("type-{number:04}")));
    for tasks in tasks.collect::<Vec<_>>().chunks(STORE_BATCH) {
        harness.submit(tasks).await;
    }
}

pub async fn a_queue_of_many_types_is_counted_in_the_first(harness: Harness) {
    let last = harness.submit_one(task_in(&harness, "mail", "z-last")).await;
    harness.advance(Duration::from_secs(5));
    fill(&harness, "other").await;
    let found = state(&harness, "other").await;
    assert_eq!((found.waiting, found.dead), (exactly(1_000), exactly(0)), "all were looked at");
    fill(&harness, "mail").await;
    let session = harness.session(&["z-last"]).await;
    assert_eq!(harness.claim_one(session).await.task, last);
    harness.submit_one(task_in(&harness, "mail", "z-last")).await;

    let found = state(&harness, "mail").await;
    let least = |count| Counted { count, more: true };
    assert_eq!((found.waiting, found.due, found.dead), (least(1_000), least(1_000), least(0)));
    assert_eq!(found.running, exactly(1), "what runs is known of every type");
    assert_eq!(found.oldest_due, Some(harness.now()));

    let page = ListQueues {
        tenant: TenantName::default_tenant(),
        after: None,
        limit: 10,
        count_to: COUNT_ROWS,
    };
    let first = harness.store().queues(page.clone()).await.unwrap();
    assert_eq!((first.queues, first.next_after), (vec![found], Some(queue("mail"))));
    let page = ListQueues { after: Some(queue("mail")), ..page };
    let second = harness.store().queues(page).await.unwrap();
    assert_eq!((second.queues.len(), second.next_after), (1, None), "the other comes next");
}

pub async fn a_place_among_many_types_counts_its_own(harness: Harness) {
    harness.submit_one(task_in(&harness, "mail", "z-last")).await;
    let id = harness.submit_one(task_in(&harness, "mail", "z-last")).await;
    fill(&harness, "mail").await;
    let place = harness.store().place(&TenantName::default_tenant(), id).await.unwrap();
    assert_eq!(place.expect("it waits").ahead, Counted { count: 1, more: true });
}
