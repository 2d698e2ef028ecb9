//! Reading, and the store's own state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Outcome;
use duly_core::limits::SCAN_ROWS;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    CancelTasks, Controlled, DeleteTasks, ListTasks, OpenSession, Replay, ReplayTasks, TaskList,
};
use duly_core::task::{Failure, NewTask};

use super::Harness;
use super::harness::{retry, success};

/// Far longer than a hint takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// All pages of a list, followed to the end.
async fn pages(harness: &Harness, tenant: &str, filter: &str, limit: u32) -> Vec<TaskList> {
    let tenant = TenantName::new(tenant).unwrap();
    let filter = Filter::parse(filter, harness.now()).unwrap();
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let (tenant, filter) = (tenant.clone(), filter.clone());
        let page = ListTasks { tenant, filter, before, limit };
        let page = harness.store().list(page).await.unwrap();
        assert!(page.tasks.len() <= limit as usize && page.scanned <= SCAN_ROWS);
        assert!(page.next_before.is_some() || !page.partial);
        assert!(before.is_none() || page.next_before.is_none_or(|next| Some(next) < before));
        before = page.next_before;
        pages.push(page);
        if before.is_none() {
            return pages;
        }
    }
}

fn ids(pages: &[TaskList]) -> Vec<TaskId> {
    pages.iter().flat_map(|page| page.tasks.iter().map(|task| task.id)).collect()
}

/// What a filter leaves of the default tenant's tasks, however long the pages are.
async fn found(harness: &Harness, filter: &str) -> Vec<TaskId> {
    let found = ids(&pages(harness, "default", filter, 100).await);
    assert_eq!(ids(&pages(harness, "default", filter, 1).await), found, "{filter}");
    found
}

fn labelled(task: NewTask, labels: &[(&str, &str)]) -> NewTask {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    NewTask { labels: labels.iter().map(own).collect::<BTreeMap<_, _>>(), ..task }
}

fn queued(mut task: NewTask, queue: &str) -> NewTask {
    task.lane.queue = QueueName::new(queue).unwrap();
    task
}

/// Opens a session of a worker with this name.
async fn worker(harness: &Harness, name: &str, types: &[&str]) -> SessionId {
    let session = OpenSession { name: name.to_owned(), ..harness.new_session(types) };
    harness.open(session).await
}

pub async fn pages_show_every_task_once_newest_first(harness: Harness) {
    let mut stored = Vec::new();
    for second in 0..25 {
        let due = Duration::from_secs(second * 7 % 25);
        let id = TaskId::mint(harness.now().plus(due), 0, second);
        let task = NewTask { id, ..harness.task_in("email", due) };
        stored.push(harness.submit_one(task).await);
    }
    let mut foreign = harness.task("email");
    foreign.lane.tenant = TenantName::new("other").unwrap();
    harness.submit_one(foreign).await;
    stored.sort_unstable_by(|a, b| b.cmp(a));
    let pages = pages(&harness, "default", "", 10).await;
    assert_eq!(pages.iter().map(|page| page.tasks.len()).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(ids(&pages), stored);
}

pub async fn a_page_of_large_tasks_is_shorter(harness: Harness) {
    let payload: Arc<str> = format!("\"{}\"", "x".repeat(1_000_000)).into();
    for _ in 0..12 {
        let payload = Arc::clone(&payload);
        harness.submit_one(NewTask { payload, ..harness.task("email") }).await;
    }
    let pages = pages(&harness, "default", "", 100).await;
    let sizes: Vec<_> = pages.iter().map(|page| page.tasks.len()).collect();
    assert!(sizes.iter().all(|size| (1..=8).contains(size)), "{sizes:?}");
    assert!(pages.iter().all(|page| !page.partial), "it is not the search that took long");
    assert_eq!(sizes.iter().sum::<usize>(), 12);
}

pub async fn each_term_narrows_the_list(harness: Harness) {
    let mail = queued(harness.task("email"), "mail");
    let mail = harness.submit_one(labelled(mail, &[("customer", "42"), ("region", "eu")])).await;
    let pdf = labelled(harness.task("pdf"), &[("customer", "42"), ("a b: \"c\"", "d e")]);
    let pdf = harness.submit_one(pdf).await;
    let plain = harness.submit_one(labelled(harness.task("pdf"), &[("customer", "")])).await;
    for (filter, wanted) in [
        ("", vec![plain, pdf, mail]),
        ("queue:mail", vec![mail]),
        ("queue:default", vec![plain, pdf]),
        ("queue:none", vec![]),
        ("type:pdf", vec![plain, pdf]),
        ("type:none", vec![]),
        ("type:pdf queue:mail", vec![]),
        ("type:email queue:mail", vec![mail]),
        ("label.customer:42", vec![pdf, mail]),
        ("label.customer:42 label.region:eu", vec![mail]),
        ("label.customer:42 type:pdf", vec![pdf]),
        ("label.customer:4", vec![]),
        ("label.Customer:42", vec![]),
        (r#"label.customer:"""#, vec![plain]),
        (r#"label."a b: \"c\"":"d e""#, vec![pdf]),
        ("status:PENDING", vec![plain, pdf, mail]),
        ("status:PENDING,FAILED label.region:eu", vec![mail]),
        ("status:FAILED", vec![]),
        ("status:SUCCESS status:CANCELLED", vec![]),
        ("worker:anybody", vec![]),
        ("error:x", vec![]),
        ("group:0123456789abcdef", vec![]),
    ] {
        assert_eq!(found(&harness, filter).await, wanted, "{filter}");
    }
}

pub async fn states_errors_and_workers_narrow_it_too(harness: Harness) {
    let store = harness.store();
    let tired = Failure::new("SMTP_ERROR", "Connection 17 timed out");
    let lost = worker(&harness, "host 7", &["a"]).await;
    let failed = harness.submit_one(harness.task("a")).await;
    let lease = harness.claim_one(lost).await;
    harness.finish_one(lost, &lease, Outcome::Fail { error: tired.clone() }).await;
    let waits = harness.submit_one(harness.task("a")).await;
    let lease = harness.claim_one(lost).await;
    harness.finish_one(lost, &lease, retry()).await;
    let busy = worker(&harness, "busy", &["b"]).await;
    let ended = harness.submit_one(harness.task("b")).await;
    let lease = harness.claim_one(busy).await;
    harness.finish_one(busy, &lease, success()).await;
    let runs = harness.submit_one(harness.task("b")).await;
    harness.claim_one(busy).await;
    let cancelled = harness.submit_one(harness.task("c")).await;
    let (tenant, reason) = (TenantName::default_tenant(), String::new());
    store.cancel(CancelTasks { tenant, tasks: vec![cancelled], reason }).await.unwrap();
    let group = format!("group:{}", duly_core::error_group::ErrorGroup::of(&tired));
    for (filter, wanted) in [
        ("status:FAILED", vec![failed]),
        ("status:PENDING", vec![waits]),
        ("status:RUNNING", vec![runs]),
        ("status:SUCCESS", vec![ended]),
        ("status:CANCELLED", vec![cancelled]),
        ("status:FAILED,RUNNING status:PENDING", vec![runs, waits, failed]),
        ("error:TIMED", vec![failed]),
        (r#"error:"connection 17""#, vec![failed]),
        ("error:smtp_", vec![failed]),
        ("error:broke", vec![waits]),
        ("error:broke status:FAILED", vec![]),
        ("error:smtp status:FAILED", vec![failed]),
        (&group, vec![failed]),
        (&format!("{group} status:FAILED type:a"), vec![failed]),
        (&format!("{group} status:FAILED type:b"), vec![]),
        (&format!("{group} status:SUCCESS"), vec![]),
        ("worker:busy", vec![runs, ended]),
        ("worker:busy status:RUNNING", vec![runs]),
        (r#"worker:"host 7" status:FAILED"#, vec![failed]),
        ("worker:busy status:FAILED", vec![]),
    ] {
        assert_eq!(found(&harness, filter).await, wanted, "{filter}");
    }
}

pub async fn a_task_that_waits_or_runs_is_listed_once(harness: Harness) {
    let mut stored = Vec::new();
    for _ in 0..3 {
        stored.insert(0, harness.submit_one(harness.task("a")).await);
    }
    let session = harness.session(&["a"]).await;
    let leases = harness.claim(session, 3).await;
    assert_eq!(found(&harness, "status:RUNNING").await, stored);
    // One waits again, one is leased again, and one is still leased from the first batch.
    harness.finish_one(session, &leases[0], retry()).await;
    harness.finish_one(session, &leases[1], Outcome::Release).await;
    let again = harness.claim_one(session).await;
    assert_eq!(again.task, leases[1].task);
    let of = |places: &[usize]| places.iter().map(|place| stored[*place]).collect::<Vec<_>>();
    for (filter, wanted) in [
        ("status:PENDING,RUNNING", of(&[0, 1, 2])),
        ("status:RUNNING", of(&[0, 1])),
        ("status:PENDING", of(&[2])),
        ("status:PENDING type:a", of(&[2])),
        ("status:PENDING queue:none", vec![]),
        ("status:RUNNING,PENDING until:1h", vec![]),
        ("status:PENDING,RUNNING,SUCCESS", of(&[0, 1, 2])),
    ] {
        assert_eq!(found(&harness, filter).await, wanted, "{filter}");
    }
}

pub async fn since_and_until_go_by_the_first_due_time(harness: Harness) {
    let mut stored = Vec::new();
    for hours in [3, 2, 1, 0] {
        let due = harness.now().plus(Duration::from_secs(3600 * (3 - hours)));
        let id = TaskId::mint(due, u32::MAX, u64::MAX);
        stored.push(harness.submit_one(NewTask { id, run_at: due, ..harness.task("a") }).await);
    }
    // It fails long after it was due, which is not what is asked here.
    harness.advance(Duration::from_secs(3 * 3600));
    let session = harness.session(&["a"]).await;
    for lease in harness.claim(session, 10).await {
        let outcome = Outcome::Fail { error: Failure::new("X", "x") };
        harness.finish_one(session, &lease, outcome).await;
    }
    let newest =
        |range: std::ops::Range<usize>| -> Vec<_> { stored[range].iter().rev().copied().collect() };
    let exact = harness.now().minus(Duration::from_secs(2 * 3600));
    for (filter, wanted) in [
        ("since:3h", 0..4),
        ("since:2h", 1..4),
        ("since:119m", 2..4),
        ("until:2h", 0..1),
        ("until:119m", 0..2),
        ("since:2h until:1h", 1..2),
        ("since:1h until:2h", 0..0),
        ("since:0s", 3..4),
        ("until:0s", 0..3),
        (&format!("since:{exact}"), 1..4),
        (&format!("until:{exact}"), 0..1),
    ] {
        assert_eq!(found(&harness, filter).await, newest(wanted.clone()), "{filter}");
        let failed = format!("{filter} status:FAILED");
        assert_eq!(found(&harness, &failed).await, newest(wanted), "{failed}");
    }
}

pub async fn failed_tasks_are_listed_by_their_due_time(harness: Harness) {
    let mut stored = Vec::new();
    for task_type in ["a", "b", "c"] {
        stored.push(harness.submit_one(harness.task(task_type)).await);
    }
    for task_type in ["b", "c", "a"] {
        harness.advance(Duration::from_secs(1));
        let session = harness.session(&[task_type]).await;
        let lease = harness.claim_one(session).await;
        let outcome = Outcome::Fail { error: Failure::new("X", "x") };
        harness.finish_one(session, &lease, outcome).await;
    }
    stored.reverse();
    assert_eq!(found(&harness, "status:FAILED").await, stored);
    assert_eq!(found(&harness, "status:FAILED,SUCCESS").await, stored);
}

pub async fn a_page_of_rare_matches_ends_and_goes_on(harness: Harness) {
    const BATCH: usize = 1000;
    let scan = SCAN_ROWS as usize;
    let mut tasks: Vec<_> = (0..scan + 2 * BATCH).map(|_| harness.task("a")).collect();
    let last = tasks.len() - 1;
    // Counted from the newest: at both ends, and on both sides of where a page has cost enough.
    let mut rare = Vec::new();
    for place in [0, scan - 1, scan, last] {
        let task = &mut tasks[last - place];
        *task = labelled(task.clone(), &[("rare", "yes")]);
        rare.push(task.id);
    }
    for batch in tasks.chunks(BATCH) {
        harness.submit(batch).await;
    }
    for limit in [1, 2, 3, 100] {
        let pages = pages(&harness, "default", "label.rare:yes", limit).await;
        assert_eq!(ids(&pages), rare, "{limit}");
        let partial = pages.iter().any(|page| page.partial);
        assert_eq!(partial, limit > 2, "{limit}: a full page is not partial");
    }
    let waiting = pages(&harness, "default", "status:PENDING label.rare:yes", 100).await;
    assert_eq!(ids(&waiting), rare, "also where only those that wait are asked for");
    let nothing = pages(&harness, "default", "label.rare:no", 10).await;
    assert!(nothing.len() > 1 && nothing[0].partial && ids(&nothing).is_empty());
    let full = pages(&harness, "default", "type:a", 200).await;
    assert!(full.iter().all(|page| !page.partial), "a page that is full has not searched for long");
}

pub async fn a_filter_finds_nothing_of_other_tenants(harness: Harness) {
    let mut foreign = labelled(queued(harness.task("a"), "mail"), &[("k", "v")]);
    foreign.lane.tenant = TenantName::new("other").unwrap();
    let session = worker(&harness, "w", &["a"]).await;
    let foreign = harness.submit_one(foreign).await;
    let lease = harness.claim_one(session).await;
    let outcome = Outcome::Fail { error: Failure::new("X", "x") };
    harness.finish_one(session, &lease, outcome).await;
    for filter in [
        "",
        "queue:mail",
        "type:a",
        "label.k:v",
        "status:FAILED",
        "error:x",
        "worker:w",
        "since:1h",
    ] {
        assert!(found(&harness, filter).await.is_empty(), "{filter}");
        let pages = pages(&harness, "other", filter, 10).await;
        assert_eq!(ids(&pages), [foreign], "{filter}");
        assert_eq!(pages[0].scanned, 1);
        let pages = self::pages(&harness, "default", filter, 10).await;
        assert_eq!(pages[0].scanned, 0, "how much others have is not told");
    }
}

pub async fn the_task_of_another_tenant_is_absent(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().get(&other, id).await.unwrap(), None);
    let missing = TaskId::mint(harness.now(), 77, 77);
    let tenant = TenantName::default_tenant();
    assert_eq!(harness.store().get(&tenant, missing).await.unwrap(), None);
}

pub async fn a_hint_names_the_earliest_due_time(harness: Harness) {
    let soon = harness.task_in("email", Duration::from_secs(1));
    let later = harness.task_in("email", Duration::from_secs(2));
    harness.submit(&[later.clone(), soon.clone()]).await;
    let hint = tokio::time::timeout(PATIENCE, async { harness.store().hint().await }).await;
    let hint = hint.expect("a hint arrives");
    assert_eq!(hint.due, soon.run_at);
    let session = harness.new_session(&["email"]);
    assert!(hint.concerns(&session), "a worker that serves the task is woken");
    // A poll finds the same.
    let session = harness.session(&["email"]).await;
    for task in [soon, later] {
        let answer = harness.ask(harness.next_claim(session, 10)).await;
        assert_eq!((answer.leases.len(), answer.next_due), (0, Some(task.run_at)));
        harness.advance(task.run_at.since(harness.now()));
        assert_eq!(harness.claim_one(session).await.task, task.id);
    }
}

pub async fn the_store_is_healthy(harness: Harness) {
    harness.store().check().await.unwrap();
    assert_eq!(harness.store().now().await.unwrap(), harness.now());
}

/// A caller can name any UUID, also one whose time lies after the year 9999.
pub async fn an_id_that_was_never_minted_is_unknown(harness: Harness) {
    let (store, tenant) = (harness.store(), TenantName::default_tenant());
    let stored = harness.submit_one(harness.task("email")).await;
    for id in [TaskId::from_bytes([0; 16]), TaskId::from_bytes([0xff; 16])] {
        assert!(store.get(&tenant, id).await.unwrap().is_none());
        assert!(store.attempts(&tenant, id).await.unwrap().is_none());
        assert!(store.place(&tenant, id).await.unwrap().is_none());
        let tasks = vec![Replay { task: id, run: 1, run_at: None }];
        let replay = ReplayTasks { tenant: tenant.clone(), tasks, payload: None };
        assert_eq!(store.replay(replay).await.unwrap(), [Controlled::Unknown]);
        let (tasks, reason) = (vec![id], String::new());
        let cancel = CancelTasks { tenant: tenant.clone(), tasks, reason };
        assert_eq!(store.cancel(cancel).await.unwrap(), [Controlled::Unknown]);
        let delete = DeleteTasks { tenant: tenant.clone(), tasks: vec![id], before: None };
        assert_eq!(store.delete(delete).await.unwrap(), [Controlled::Done]);
        let (filter, before) = (Filter::default(), Some(id));
        let page = ListTasks { tenant: tenant.clone(), filter, before, limit: 10 };
        let found = store.list(page).await.unwrap().tasks;
        let expected = (stored < id).then_some(stored);
        assert_eq!(found.first().map(|task| task.id), expected, "{id}");
    }
}
