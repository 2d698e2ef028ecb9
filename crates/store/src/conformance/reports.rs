//! What attempts tell while they run: how far they are, and what they log.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::{
    ATTEMPTS, LOG_BYTES, LOG_EXCERPT_BYTES, LOG_PIECE_BYTES, LOG_PIECE_OVERHEAD, LOG_PIECES,
    STORE_BATCH,
};
use duly_core::log::LogChunk;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Controlled, DeleteTasks, Error, LogPage, LogPosition, OpenSession, ReadLogs,
    Replay, ReplayTasks, Report, ReportItem, Reported,
};
use duly_core::progress::Progress;
use duly_core::task::NewTask;

use super::Harness;
use super::harness::{fail, retry_after, success};

const ALL: usize = usize::MAX;

fn chunk(offset: u64, text: &str) -> LogChunk {
    LogChunk { offset, text: text.into() }
}

fn item(lease: &Lease) -> ReportItem {
    ReportItem { task: lease.task, epoch: lease.epoch, progress: None, log: None }
}

fn read(task: TaskId) -> ReadLogs {
    let (tenant, after) = (TenantName::default_tenant(), LogPosition::default());
    ReadLogs { tenant, task, epoch: None, after, limit: ALL }
}

async fn report(harness: &Harness, session: SessionId, items: Vec<ReportItem>) -> Vec<Reported> {
    harness.store().report(Report { session, items }).await.unwrap()
}

async fn log(harness: &Harness, session: SessionId, lease: &Lease, log: LogChunk) -> Reported {
    report(harness, session, vec![ReportItem { log: Some(log), ..item(lease) }]).await[0]
}

async fn tell(
    harness: &Harness,
    session: SessionId,
    lease: &Lease,
    progress: Progress,
) -> Reported {
    report(harness, session, vec![ReportItem { progress: Some(progress), ..item(lease) }]).await[0]
}

async fn page(harness: &Harness, read: ReadLogs) -> LogPage {
    harness.store().logs(read).await.unwrap().expect("the task is stored")
}

/// Everything that a task has logged, as (epoch, offset, text).
async fn logged(harness: &Harness, task: TaskId) -> Vec<(u32, u64, String)> {
    let parts = page(harness, read(task)).await.parts;
    parts.into_iter().map(|it| (it.epoch, it.offset, it.text.to_string())).collect()
}

/// A task of type `email` and a session that holds it.
async fn held(harness: &Harness) -> (SessionId, Lease) {
    let session = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    (session, harness.claim_one(session).await)
}

async fn replay(harness: &Harness, task: TaskId) {
    let tenant = TenantName::default_tenant();
    let tasks = vec![Replay { task, run: 1, run_at: None }];
    let order = ReplayTasks { tenant, tasks, payload: None };
    assert_eq!(harness.store().replay(order).await.unwrap(), [Controlled::Done]);
}

async fn done(harness: &Harness, task: TaskId) -> Option<u64> {
    harness.get(task).await.progress.map(|it| it.progress.done)
}

pub async fn progress_shows_on_its_task(harness: Harness) {
    let (session, lease) = held(&harness).await;
    assert_eq!(harness.get(lease.task).await.progress, None);
    harness.advance(Duration::from_secs(3));
    let checkpoint = Some(Arc::from(r#"{"row":7}"#));
    let told = Progress { checkpoint, ..Progress::new(7, Some(9)).with_message("half-way") };
    assert_eq!(tell(&harness, session, &lease, told.clone()).await, Reported::Done);
    let stored = harness.get(lease.task).await.progress.unwrap();
    assert_eq!((stored.progress, stored.at), (told, harness.now()));
}

pub async fn the_last_progress_counts_and_a_checkpoint_stays(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let checkpoint = |text: &str| Some(Arc::from(text));
    let first = Progress { checkpoint: checkpoint("1"), ..Progress::new(9, Some(10)) };
    tell(&harness, session, &lease, first.with_message("first")).await;
    tell(&harness, session, &lease, Progress::new(3, None)).await;
    let stored = harness.get(lease.task).await.progress.unwrap().progress;
    assert_eq!(stored, Progress { checkpoint: checkpoint("1"), ..Progress::new(3, None) });
    let last = Progress { checkpoint: checkpoint("2"), ..Progress::new(4, None) };
    tell(&harness, session, &lease, last.clone()).await;
    assert_eq!(harness.get(lease.task).await.progress.unwrap().progress, last);
}

pub async fn progress_goes_with_its_run(harness: Harness) {
    let (session, lease) = held(&harness).await;
    tell(&harness, session, &lease, Progress::new(5, Some(9))).await;
    harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    assert_eq!(done(&harness, lease.task).await, Some(5), "while it waits");
    let lease = harness.claim_one(session).await;
    assert_eq!(done(&harness, lease.task).await, Some(5), "in the next attempt");
    tell(&harness, session, &lease, Progress::new(6, Some(9))).await;
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(done(&harness, lease.task).await, Some(6), "after the end");
    replay(&harness, lease.task).await;
    assert_eq!(done(&harness, lease.task).await, None, "in the next run");
}

pub async fn a_log_reads_back_in_order(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let empty = page(&harness, read(lease.task)).await;
    assert_eq!((empty.parts.len(), empty.next, empty.live), (0, LogPosition::default(), true));
    assert_eq!(log(&harness, session, &lease, chunk(0, "eins\n")).await, Reported::Done);
    harness.advance(Duration::from_secs(1));
    log(&harness, session, &lease, chunk(5, "zwölf\n")).await;
    // What lies between was never sent.
    log(&harness, session, &lease, chunk(100, "end\n")).await;
    let page = page(&harness, read(lease.task)).await;
    let texts: Vec<_> = page.parts.iter().map(|it| (it.offset, &*it.text)).collect();
    assert_eq!(texts, [(0, "eins\nzwölf\n"), (100, "end\n")]);
    let first = &page.parts[0];
    assert_eq!((first.run, first.attempt, first.epoch), (1, 1, lease.epoch));
    assert_eq!(first.at, harness.now(), "the last of it came then");
    assert_eq!(page.next, LogPosition { epoch: lease.epoch, offset: 104 });
}

pub async fn pages_of_a_log_show_all_of_it_once(harness: Harness) {
    let (session, lease) = held(&harness).await;
    log(&harness, session, &lease, chunk(0, "0123")).await;
    log(&harness, session, &lease, chunk(9, "456")).await;
    harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    let second = harness.claim_one(session).await;
    log(&harness, session, &second, chunk(0, "abc")).await;
    let two = 7 + 2 * LOG_PIECE_OVERHEAD;
    for (limit, sizes) in
        [(1, vec![1, 1, 1, 0]), (two - 1, vec![1, 2, 0]), (two, vec![2, 1, 0]), (ALL, vec![3, 0])]
    {
        let (mut after, mut seen, mut pages) = (LogPosition::default(), String::new(), Vec::new());
        loop {
            let page = page(&harness, ReadLogs { after, limit, ..read(lease.task) }).await;
            pages.push(page.parts.len());
            page.parts.iter().for_each(|part| seen.push_str(&part.text));
            after = page.next;
            if page.parts.is_empty() {
                break;
            }
        }
        assert_eq!((seen.as_str(), pages), ("0123456abc", sizes), "by {limit}");
    }
    for (epoch, texts) in [(1, vec!["0123", "456"]), (2, vec!["abc"]), (3, vec![])] {
        let page = page(&harness, ReadLogs { epoch: Some(epoch), ..read(lease.task) }).await;
        let seen: Vec<_> = page.parts.iter().map(|part| &*part.text).collect();
        assert_eq!(seen, texts, "of epoch {epoch}");
    }
}

pub async fn what_is_there_is_not_added_again(harness: Harness) {
    let (session, lease) = held(&harness).await;
    for piece in [
        chunk(0, "one "),
        chunk(0, "one "),
        chunk(0, "one two "),
        chunk(2, "e t"),
        chunk(4, "two three"),
        chunk(0, ""),
    ] {
        assert_eq!(log(&harness, session, &lease, piece).await, Reported::Done);
    }
    let whole = chunk(8, "three, and four");
    let finish = Finish { log: Some(whole), ..Finish::new(lease.task, lease.epoch, success()) };
    harness.finish(session, vec![finish.clone()]).await;
    assert_eq!(harness.finish(session, vec![finish]).await, [Finished::Done]);
    let expected = [(lease.epoch, 0, "one two three, and four".to_owned())];
    assert_eq!(logged(&harness, lease.task).await, expected);
}

pub async fn small_pieces_become_one(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let last = LOG_PIECE_BYTES as u64;
    for place in 0..last {
        log(&harness, session, &lease, chunk(place, "x")).await;
    }
    assert_eq!(logged(&harness, lease.task).await, [(1, 0, "x".repeat(LOG_PIECE_BYTES))]);
    log(&harness, session, &lease, chunk(last, "y")).await;
    let large = "z".repeat(LOG_PIECE_BYTES);
    log(&harness, session, &lease, chunk(last + 1, &large)).await;
    let sizes: Vec<_> =
        logged(&harness, lease.task).await.iter().map(|it| (it.1, it.2.len())).collect();
    assert_eq!(sizes, [(0, LOG_PIECE_BYTES), (last, 1), (last + 1, LOG_PIECE_BYTES)]);
    // What comes after a hole, or in another attempt, is apart in any case.
    harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    let next = harness.claim_one(session).await;
    log(&harness, session, &next, chunk(0, "a")).await;
    log(&harness, session, &next, chunk(2, "b")).await;
    let own = ReadLogs { epoch: Some(next.epoch), ..read(next.task) };
    let texts: Vec<_> =
        page(&harness, own).await.parts.iter().map(|it| it.text.to_string()).collect();
    assert_eq!(texts, ["a", "b"]);
}

pub async fn a_piece_that_grows_is_read_on_from_within(harness: Harness) {
    let (session, lease) = held(&harness).await;
    log(&harness, session, &lease, chunk(0, "zwö")).await;
    let first = page(&harness, read(lease.task)).await;
    assert_eq!(first.next, LogPosition { epoch: lease.epoch, offset: 4 });
    let rest = ReadLogs { after: first.next, ..read(lease.task) };
    assert_eq!(page(&harness, rest.clone()).await.parts, []);
    harness.advance(Duration::from_secs(1));
    log(&harness, session, &lease, chunk(4, "lf")).await;
    log(&harness, session, &lease, chunk(20, "!")).await;
    let rest = page(&harness, rest).await;
    let texts: Vec<_> = rest.parts.iter().map(|it| (it.offset, &*it.text, it.at)).collect();
    assert_eq!(texts, [(4, "lf", harness.now()), (20, "!", harness.now())]);
    // A place within a character or a hole, and one beyond the end.
    for (offset, expected) in [(3, vec![(4, "lf"), (20, "!")]), (10, vec![(20, "!")]), (21, vec![])]
    {
        let after = LogPosition { epoch: lease.epoch, offset };
        let page = page(&harness, ReadLogs { after, ..read(lease.task) }).await;
        let texts: Vec<_> = page.parts.iter().map(|it| (it.offset, &*it.text)).collect();
        assert_eq!(texts, expected, "after {offset}");
    }
}

pub async fn of_a_log_with_many_holes_the_last_pieces_are_kept(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let count = LOG_PIECES + 3;
    for number in 0..count {
        log(&harness, session, &lease, chunk(2 * number as u64, "x")).await;
    }
    let kept = logged(&harness, lease.task).await;
    assert_eq!((kept.len(), kept[0].1), (LOG_PIECES, 6));
    log(&harness, session, &lease, chunk(2 * count as u64 - 1, "y")).await;
    assert_eq!(logged(&harness, lease.task).await.len(), LOG_PIECES, "it is part of the last");
}

pub async fn only_the_end_of_a_long_log_is_kept(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let (piece, count) = ("x".repeat(LOG_BYTES / 4 + 1), 12);
    for number in 0..count {
        log(&harness, session, &lease, chunk((number * piece.len()) as u64, &piece)).await;
    }
    let kept = logged(&harness, lease.task).await;
    assert_eq!(kept.len(), 4, "those that the last {LOG_BYTES} bytes begin in or come after");
    assert_eq!(kept[3].1, ((count - 1) * piece.len()) as u64);
    let start = (count * piece.len()) as u64;
    log(&harness, session, &lease, chunk(start, &("y".repeat(LOG_BYTES) + "z"))).await;
    let kept = logged(&harness, lease.task).await;
    assert_eq!(kept.len(), 1, "a piece that is all there is room for");
    assert_eq!((kept[0].1, kept[0].2.len()), (start + 1, LOG_BYTES));
    log(&harness, session, &lease, chunk(start + LOG_BYTES as u64 + 1, "!")).await;
    assert_eq!(logged(&harness, lease.task).await.len(), 2, "its end is among the last");
    harness.finish_one(session, &lease, fail()).await;
    let attempts = harness.store().attempts(&TenantName::default_tenant(), lease.task).await;
    let excerpt = attempts.unwrap().unwrap()[0].log.clone().unwrap();
    assert_eq!(excerpt.len(), LOG_EXCERPT_BYTES);
    assert!(excerpt.ends_with("yz!"));
}

pub async fn every_outcome_keeps_what_came_with_it(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let again = || retry_after(Some(Duration::from_secs(60)));
    for outcome in [success(), fail(), again(), Outcome::Release] {
        let id = harness.submit_one(harness.task("email")).await;
        let lease = harness.claim_one(session).await;
        let finish = Finish::new(id, lease.epoch, outcome.clone());
        let progress = Some(Progress::new(7, None));
        let finish = Finish { progress, log: Some(chunk(3, "last words")), ..finish };
        harness.finish(session, vec![finish]).await;
        assert_eq!(done(&harness, id).await, Some(7), "{outcome:?}");
        let expected = [(lease.epoch, 3, "last words".to_owned())];
        assert_eq!(logged(&harness, id).await, expected, "{outcome:?}");
        if outcome == Outcome::Release {
            let lease = harness.claim_one(session).await;
            harness.finish_one(session, &lease, success()).await;
        }
    }
}

pub async fn a_refused_outcome_leaves_nothing(harness: Harness) {
    let (session, lease) = held(&harness).await;
    harness.leave(session).await;
    for outcome in [success(), fail(), retry_after(None), Outcome::Release] {
        let finish = Finish::new(lease.task, lease.epoch, outcome);
        let progress = Some(Progress::new(7, None));
        let finish = Finish { progress, log: Some(chunk(0, "too late")), ..finish };
        assert_eq!(harness.finish(session, vec![finish]).await, [Finished::LeaseLost]);
    }
    assert_eq!(logged(&harness, lease.task).await, []);
    assert_eq!(done(&harness, lease.task).await, None);
}

pub async fn a_log_ends_with_its_attempt(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let live = async |epoch| page(&harness, ReadLogs { epoch, ..read(lease.task) }).await.live;
    assert!(live(None).await && live(Some(1)).await && live(Some(2)).await);
    harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    assert!(live(None).await && !live(Some(1)).await && live(Some(2)).await);
    let lease = harness.claim_one(session).await;
    assert!(!live(Some(1)).await && live(Some(2)).await);
    harness.finish_one(session, &lease, success()).await;
    assert!(!live(None).await && !live(Some(2)).await && !live(Some(3)).await);
}

pub async fn the_log_of_a_lost_attempt_is_kept(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    log(&harness, session, &lease, chunk(0, "I feel dizzy\n")).await;
    harness.die(session).await;
    let kept = harness.store().attempts(&TenantName::default_tenant(), id).await;
    let kept = kept.unwrap().unwrap();
    assert_eq!(kept[0].error.as_ref().unwrap().code, "WORKER_LOST");
    assert_eq!(kept[0].log.as_deref(), Some("I feel dizzy\n"));
}

pub async fn logs_go_with_their_attempts(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(NewTask { retries: 1000, ..harness.task("email") }).await;
    let silent_ones = 3;
    for number in 1..=ATTEMPTS + 2 * silent_ones {
        let lease = harness.claim_one(session).await;
        if number <= ATTEMPTS + silent_ones {
            log(&harness, session, &lease, chunk(0, "x")).await;
        }
        // Handing back leaves no attempt, but it may leave a log.
        let outcome =
            if number % 2 == 0 { Outcome::Release } else { retry_after(Some(Duration::ZERO)) };
        harness.finish_one(session, &lease, outcome).await;
    }
    let epochs = |kept: Vec<(u32, u64, String)>| kept.iter().map(|it| it.0).collect::<Vec<_>>();
    let newest = u32::try_from(ATTEMPTS + silent_ones).unwrap();
    assert_eq!(epochs(logged(&harness, id).await), (4..=newest).collect::<Vec<_>>());
    for _ in 0..ATTEMPTS {
        let lease = harness.claim_one(session).await;
        harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    }
    assert_eq!(logged(&harness, id).await, [], "those of attempts that are forgotten");
}

pub async fn only_its_holder_may_report(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let stranger = harness.session(&["email"]).await;
    let news = |lease: &Lease| {
        let (progress, log) = (Some(Progress::new(1, None)), Some(chunk(0, "x")));
        ReportItem { progress, log, ..item(lease) }
    };
    let ahead = Lease { epoch: lease.epoch + 1, ..lease.clone() };
    let unknown = Lease { task: harness.task("email").id, ..lease.clone() };
    let items = vec![news(&ahead), news(&unknown), item(&lease)];
    let expected = [Reported::LeaseLost, Reported::Unknown, Reported::Done];
    assert_eq!(report(&harness, session, items).await, expected);
    assert_eq!(report(&harness, stranger, vec![news(&lease)]).await, [Reported::LeaseLost]);
    harness.finish_one(session, &lease, retry_after(Some(Duration::ZERO))).await;
    assert_eq!(report(&harness, session, vec![news(&lease)]).await, [Reported::LeaseLost]);
    let next = harness.claim_one(session).await;
    let stale = vec![news(&lease), ReportItem { log: None, ..news(&lease) }, item(&lease)];
    assert_eq!(report(&harness, session, stale).await, [Reported::LeaseLost; 3]);
    let (tenant, tasks) = (TenantName::default_tenant(), vec![next.task]);
    let order = CancelTasks { tenant, tasks, reason: "enough".to_owned() };
    harness.store().cancel(order).await.unwrap();
    assert_eq!(report(&harness, session, vec![news(&next)]).await, [Reported::LeaseLost]);
    assert_eq!(harness.get(lease.task).await.progress, None);
    assert_eq!(logged(&harness, lease.task).await, []);
}

pub async fn those_of_another_tenant_are_out_of_reach(harness: Harness) {
    let (session, lease) = held(&harness).await;
    log(&harness, session, &lease, chunk(0, "secret")).await;
    let other = TenantName::new("other").unwrap();
    let bound = OpenSession { tenant: Some(other.clone()), ..harness.new_session(&["email"]) };
    let bound = harness.open(bound).await;
    assert_eq!(log(&harness, bound, &lease, chunk(6, "!")).await, Reported::Unknown);
    assert_eq!(tell(&harness, bound, &lease, Progress::new(1, None)).await, Reported::Unknown);
    let foreign = ReadLogs { tenant: other, ..read(lease.task) };
    assert_eq!(harness.store().logs(foreign).await.unwrap(), None);
    assert_eq!(harness.store().logs(read(harness.task("email").id)).await.unwrap(), None);
    // Another task's log is not this one's.
    let neighbour = harness.submit_one(harness.task("email")).await;
    assert_eq!(logged(&harness, neighbour).await, []);
}

pub async fn a_deletion_takes_them_along(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let task = NewTask { id: lease.task, ..harness.task("email") };
    tell(&harness, session, &lease, Progress::new(1, None)).await;
    log(&harness, session, &lease, chunk(0, "x")).await;
    harness.finish_one(session, &lease, fail()).await;
    let (tenant, tasks) = (TenantName::default_tenant(), vec![task.id]);
    let order = DeleteTasks { tenant, tasks, before: None };
    assert_eq!(harness.store().delete(order).await.unwrap(), [Controlled::Done]);
    assert_eq!(harness.store().logs(read(task.id)).await.unwrap(), None);
    let id = harness.submit_one(task).await;
    assert_eq!(harness.get(id).await.progress, None);
    assert_eq!(logged(&harness, id).await, []);
}

pub async fn they_outlive_a_restart(mut harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    tell(&harness, session, &lease, Progress::new(1, Some(2))).await;
    log(&harness, session, &lease, chunk(0, "one ")).await;
    harness.crash().await;
    assert_eq!(done(&harness, id).await, Some(1));
    assert_eq!(log(&harness, session, &lease, chunk(0, "one two")).await, Reported::Done);
    assert_eq!(logged(&harness, id).await, [(1, 0, "one two".to_owned())]);
}

pub async fn a_batch_over_the_limit_is_refused(harness: Harness) {
    let (session, lease) = held(&harness).await;
    let items = vec![item(&lease); STORE_BATCH + 1];
    let refused = harness.store().report(Report { session, items }).await;
    assert!(matches!(refused, Err(Error::TooLarge { limit: STORE_BATCH, .. })), "{refused:?}");
    let items = vec![item(&lease); STORE_BATCH];
    assert_eq!(report(&harness, session, items).await.len(), STORE_BATCH);
}
