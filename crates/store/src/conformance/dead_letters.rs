//! The dead-letter queue.

use std::time::Duration;

use duly_core::error_group::ErrorGroup;
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::{SCAN_ROWS, STORE_BATCH};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    Controlled, DeadGroup, DeleteTasks, GroupDead, ListDead, Replay, ReplayTasks,
};
use duly_core::state::Status;
use duly_core::task::{Failure, NewTask};

use super::Harness;
use super::harness::{fail, retry, success};
use super::idempotency::keyed;

fn own() -> TenantName {
    TenantName::default_tenant()
}

async fn list(harness: &Harness, filter: Filter) -> Vec<TaskId> {
    let page = ListDead { tenant: own(), filter, before: None, limit: 100 };
    let page = harness.store().dead_letters(page).await.unwrap();
    assert_eq!(page.next_before, None);
    page.tasks.iter().map(|task| task.id).collect()
}

async fn groups(harness: &Harness, filter: Filter) -> Vec<DeadGroup> {
    let which = GroupDead { tenant: own(), filter, limit: 100 };
    let found = harness.store().dead_groups(which).await.unwrap();
    assert!(!found.partial, "there are not that many");
    let counted: u64 = found.groups.iter().map(|group| group.count).sum();
    assert!(counted <= u64::from(found.scanned), "what is counted was looked at");
    found.groups
}

/// Runs a task that fails for good with this message, a second after the last.
async fn failed(harness: &Harness, task: NewTask, message: &str) -> TaskId {
    harness.advance(Duration::from_secs(1));
    let session = harness.session(&[task.lane.task_type.as_str()]).await;
    let id = harness.submit_one(task).await;
    let lease = harness.claim_one(session).await;
    let outcome = Outcome::Fail { error: Failure::new("BROKEN", message) };
    harness.finish_one(session, &lease, outcome).await;
    harness.leave(session).await;
    id
}

async fn delete(harness: &Harness, task: TaskId) -> Controlled {
    let order = DeleteTasks { tenant: own(), tasks: vec![task], before: None };
    harness.store().delete(order).await.unwrap()[0]
}

pub async fn the_last_failure_leads_there(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(NewTask { retries: 1, ..harness.task("email") }).await;
    for _ in 0..2 {
        assert!(list(&harness, Filter::default()).await.is_empty());
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, retry()).await;
        harness.advance(Duration::from_secs(10));
    }
    assert_eq!(list(&harness, Filter::default()).await, [id]);
}

pub async fn so_does_the_last_loss(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    harness.lose("email", duly_core::limits::LOSSES).await;
    assert_eq!(list(&harness, Filter::default()).await, [id]);
}

pub async fn a_replay_leads_out_of_it(harness: Harness) {
    let id = failed(&harness, harness.task("email"), "once").await;
    for run in 1..=2 {
        let tasks = vec![Replay { task: id, run, run_at: None }];
        let order = ReplayTasks { tenant: own(), tasks, payload: None };
        harness.store().replay(order).await.unwrap();
        assert!(list(&harness, Filter::default()).await.is_empty());
        let session = harness.session(&["email"]).await;
        let lease = harness.claim_one(session).await;
        let outcome = if run == 1 { fail() } else { success() };
        harness.finish_one(session, &lease, outcome).await;
        let dead = list(&harness, Filter::default()).await.len();
        assert_eq!(dead, usize::from(run == 1));
    }
}

pub async fn pages_show_all_of_it_last_failure_first(harness: Harness) {
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.insert(0, failed(&harness, harness.task("email"), "x").await);
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = ListDead { tenant: own(), filter: Filter::default(), before, limit: 3 };
        let page = harness.store().dead_letters(page).await.unwrap();
        assert!(page.tasks.iter().all(|task| task.status == Status::Failed));
        seen.extend(page.tasks.iter().map(|task| task.id));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
}

pub async fn a_filter_narrows_it(harness: Harness) {
    let mut mail = harness.task("email");
    mail.lane.queue = QueueName::new("mail").unwrap();
    let mail = failed(&harness, mail, "order 1 is gone").await;
    let middle = harness.now();
    let other = failed(&harness, harness.task("other"), "order 2 is gone").await;
    let broken = failed(&harness, harness.task("email"), "out of paper").await;
    let group = ErrorGroup::of(&Failure::new("BROKEN", "order 77 is gone"));
    let none = Filter::default;
    let cases = [
        (Filter { queue: Some(QueueName::new("mail").unwrap()), ..none() }, vec![mail]),
        (Filter { task_type: Some(TypeName::new("email").unwrap()), ..none() }, vec![broken, mail]),
        (Filter { group: Some(group), ..none() }, vec![other, mail]),
        (Filter { until: Some(middle), ..none() }, vec![]),
        (Filter { since: Some(middle), ..none() }, vec![broken, other, mail]),
        (Filter { since: Some(harness.now()), ..none() }, vec![broken]),
        (Filter { until: Some(harness.now()), group: Some(group), ..none() }, vec![other, mail]),
    ];
    for (filter, expected) in cases {
        assert_eq!(list(&harness, filter.clone()).await, expected, "{filter:?}");
        let counted: u64 = groups(&harness, filter.clone()).await.iter().map(|it| it.count).sum();
        assert_eq!(counted, expected.len() as u64, "{filter:?}");
    }
}

pub async fn labels_errors_and_workers_narrow_it_too(harness: Harness) {
    let of = |customer: &str| {
        let labels = [("customer".to_owned(), customer.to_owned()), ("k".to_owned(), "v".into())];
        NewTask { labels: labels.into(), ..harness.task("email") }
    };
    let one = failed(&harness, of("42"), "Out of paper").await;
    let name = harness.get(one).await.worker.unwrap();
    let two = failed(&harness, of("43"), "out of ink").await;
    let three = failed(&harness, of("43"), "out of ink").await;
    for (filter, wanted) in [
        ("label.customer:43".to_owned(), vec![three, two]),
        ("label.customer:42 label.k:v".to_owned(), vec![one]),
        ("label.customer:42 label.k:w".to_owned(), vec![]),
        ("error:\"OUT of\"".to_owned(), vec![three, two, one]),
        ("error:paper".to_owned(), vec![one]),
        ("error:broken label.customer:43 until:0s".to_owned(), vec![two]),
        (format!("worker:{name}"), vec![one]),
        (format!("worker:{name} error:ink"), vec![]),
    ] {
        let filter = Filter::parse_dead(&filter, harness.now()).unwrap();
        assert_eq!(list(&harness, filter.clone()).await, wanted, "{filter}");
        let groups = groups(&harness, filter.clone()).await;
        let counted: u64 = groups.iter().map(|group| group.count).sum();
        assert_eq!(counted, wanted.len() as u64, "{filter}");
        assert!(groups.iter().all(|group| wanted.contains(&group.sample)), "{filter}");
    }
}

pub async fn tasks_in_other_states_are_not_in_it(harness: Harness) {
    let dead = failed(&harness, harness.task("email"), "x").await;
    harness.submit_one(harness.task("email")).await;
    for (statuses, wanted) in [
        (vec![Status::Pending], vec![]),
        (vec![Status::Pending, Status::Failed], vec![dead]),
        (vec![Status::Failed], vec![dead]),
    ] {
        let statuses = statuses.into_iter().collect();
        let filter = Filter { statuses, ..Filter::default() };
        assert_eq!(list(&harness, filter.clone()).await, wanted, "{filter}");
        assert_eq!(groups(&harness, filter.clone()).await.len(), wanted.len(), "{filter}");
    }
}

pub async fn a_search_that_takes_long_goes_on(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let mut rare = Vec::new();
    let count = SCAN_ROWS as usize + 1;
    for first in (0..count).step_by(STORE_BATCH) {
        let size = STORE_BATCH.min(count - first);
        let mut tasks: Vec<_> = (0..size).map(|_| harness.task("email")).collect();
        if size < STORE_BATCH || first == 0 {
            tasks[0].labels = [("rare".to_owned(), "yes".to_owned())].into();
            rare.insert(0, tasks[0].id);
        }
        harness.submit(&tasks).await;
        let leases = harness.claim(session, STORE_BATCH).await;
        let fail = |lease: &duly_core::lease::Lease| Finish::new(lease.task, lease.epoch, fail());
        harness.finish(session, leases.iter().map(fail).collect()).await;
        harness.advance(Duration::from_secs(1));
    }
    let (mut seen, mut before, mut partial) = (Vec::new(), None, 0);
    let filter = Filter::parse_dead("label.rare:yes", harness.now()).unwrap();
    loop {
        let page = ListDead { tenant: own(), filter: filter.clone(), before, limit: 10 };
        let page = harness.store().dead_letters(page).await.unwrap();
        assert!(page.scanned <= SCAN_ROWS);
        seen.extend(page.tasks.iter().map(|task| task.id));
        partial += usize::from(page.partial);
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, rare);
    assert!(partial > 0, "a page that looks at all of them takes too long");
}

pub async fn alike_errors_are_one_group(harness: Harness) {
    let first = harness.now().plus(Duration::from_secs(1));
    failed(&harness, harness.task("email"), "order 1 is gone").await;
    failed(&harness, harness.task("email"), "order 22 is gone").await;
    let sample = failed(&harness, harness.task("email"), "order 333 is gone").await;
    let last = harness.now();
    failed(&harness, harness.task("email"), "out of paper").await;
    let groups = groups(&harness, Filter::default()).await;
    assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [3, 1]);
    let DeadGroup { first_failed_at, last_failed_at, error, .. } = &groups[0];
    assert_eq!((*first_failed_at, *last_failed_at, groups[0].sample), (first, last, sample));
    assert_eq!(
        (groups[0].group, error.message.as_str()),
        (ErrorGroup::of(error), "order 333 is gone")
    );
    assert_eq!((groups[0].queue.as_str(), groups[0].task_type.as_str()), ("default", "email"));
}

pub async fn a_deleted_task_is_gone(harness: Harness) {
    let mut large = harness.task("email");
    large.payload = format!("\"{}\"", "x".repeat(5000)).into();
    let id = failed(&harness, large.clone(), "x").await;
    for _ in 0..2 {
        assert_eq!(delete(&harness, id).await, Controlled::Done, "twice is the same as once");
        assert_eq!(harness.store().get(&own(), id).await.unwrap(), None);
        assert!(harness.store().attempts(&own(), id).await.unwrap().is_none());
        assert!(list(&harness, Filter::default()).await.is_empty());
        assert!(groups(&harness, Filter::default()).await.is_empty());
    }
    assert_eq!(harness.submit(&[large]).await, [harness.stored()], "the id is free again");
}

pub async fn the_key_of_a_deleted_task_is_free_again(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(keyed(harness.task("email"), "k", 1)).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    delete(&harness, id).await;
    let next = keyed(harness.task("email"), "k", 2);
    assert_eq!(harness.submit(&[next]).await, [harness.stored()]);
}

pub async fn that_of_another_tenant_is_out_of_reach(harness: Harness) {
    let mut foreign = harness.task("email");
    let tenant = TenantName::new("other").unwrap();
    foreign.lane.tenant = tenant.clone();
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(foreign).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, fail()).await;
    assert!(list(&harness, Filter::default()).await.is_empty());
    assert!(groups(&harness, Filter::default()).await.is_empty());
    assert_eq!(delete(&harness, id).await, Controlled::Done, "as if it did not exist");
    assert!(harness.store().get(&tenant, id).await.unwrap().is_some());
}

pub async fn a_deleted_task_leaves_no_lease_behind(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let task = harness.task("email");
    let mut claims = Vec::new();
    for _ in 0..2 {
        harness.submit_one(task.clone()).await;
        claims.push(harness.next_claim(session, 10));
        let lease = harness.ask(&claims[claims.len() - 1]).await.leases.remove(0);
        assert_eq!(lease.epoch, 1, "it is another task with the same id");
        if claims.len() == 1 {
            harness.finish_one(session, &lease, fail()).await;
            delete(&harness, task.id).await;
        }
    }
    assert!(harness.ask(&claims[0]).await.leases.is_empty());
    assert_eq!(harness.ask(&claims[1]).await.leases.len(), 1);
}
