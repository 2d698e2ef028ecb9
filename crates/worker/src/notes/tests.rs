use duly_core::time::Timestamp;

use super::*;

fn notes() -> (Arc<ReportQueue>, Arc<Notes>) {
    let queue = Arc::<ReportQueue>::default();
    let notes = Notes::new(&queue, TaskId::mint(Timestamp::EPOCH, 1, 1), 3);
    (queue, notes)
}

fn chunk(offset: u64, text: &str) -> Option<LogChunk> {
    Some(LogChunk { offset, text: text.into() })
}

#[test]
fn lines_are_kept_in_order() {
    let notes = Arc::<Notes>::default();
    assert_eq!(notes.logged(), None);
    notes.log("one");
    notes.log(format_args!("t{}o", "\0w"));
    assert_eq!(notes.logged().as_deref(), Some("one\nt?wo\n"));
}

#[test]
fn only_the_end_is_kept_from_a_whole_character_on() {
    let notes = Arc::<Notes>::default();
    let mut written = 0;
    for number in 0..20_000 {
        notes.log(number);
        written += number.to_string().len() + 1;
        assert!(notes.state.lock().text.len() <= 2 * LOG_BYTES);
    }
    let log = notes.state.lock().unreported().1.unwrap();
    assert_eq!((log.text.len(), log.end()), (LOG_BYTES, written as u64));
    assert!(log.text.ends_with("19998\n19999\n"));
    notes.log("ä".repeat(LOG_BYTES));
    let (_, log) = notes.close();
    let log = log.unwrap();
    assert!(log.text.starts_with('ä') && log.text.ends_with("ä\n"));
    assert_eq!(log.text.len(), LOG_BYTES - 1);
    assert_eq!(log.end(), (written + 2 * LOG_BYTES + 1) as u64, "as if all of it had been kept");
}

#[test]
fn an_acknowledged_report_is_not_sent_again() {
    let (queue, notes) = notes();
    notes.log("one");
    notes.progress(Progress::new(1, None));
    let queued = queue.take();
    assert_eq!(queued.len(), 1, "queued once");
    let first = queued[0].pending_report().unwrap();
    assert_eq!(first.item.log, chunk(0, "one\n"));
    assert_eq!(first.item.progress, Some(Progress::new(1, None)));
    // Notes that arrive before the answer make a report of their own.
    notes.log("two");
    first.acknowledge();
    let second = queue.take()[0].pending_report().unwrap();
    assert_eq!((&second.item.progress, &second.item.log), (&None, &chunk(4, "two\n")));
    // Without an answer the notes are reported again.
    notes.progress(Progress::new(2, None));
    let third = queue.take()[0].pending_report().unwrap();
    assert_eq!(
        (third.item.progress.as_ref().unwrap().done, &third.item.log),
        (2, &second.item.log)
    );
    second.acknowledge();
    assert_eq!(notes.close(), (Some(Progress::new(2, None)), None));
    // An answer after the end changes nothing.
    third.acknowledge();
    assert_eq!(notes.close(), (None, None));
}

#[test]
fn a_checkpoint_is_reported_until_it_is_acknowledged() {
    let (queue, notes) = notes();
    let checkpoint = |text: &str| Some(Arc::from(text));
    notes.checkpoint("7".into());
    notes.progress(Progress::new(1, None));
    let report = queue.take()[0].pending_report().unwrap();
    let reported = Progress { checkpoint: checkpoint("7"), ..Progress::new(1, None) };
    assert_eq!(report.item.progress, Some(reported));
    report.acknowledge();
    notes.progress(Progress::new(2, None));
    let report = queue.take()[0].pending_report().unwrap();
    assert_eq!(report.item.progress, Some(Progress::new(2, None)));
    notes.checkpoint("8".into());
    report.acknowledge();
    let left = Progress { checkpoint: checkpoint("8"), ..Progress::new(2, None) };
    assert_eq!(notes.close().0, Some(left));
}

#[test]
fn an_attempt_that_has_ended_reports_nothing() {
    let (queue, notes) = notes();
    notes.log("one");
    let queued = queue.take();
    notes.close();
    assert!(queued[0].pending_report().is_none());
    notes.log("too late");
    queued[0].requeue();
    assert!(queue.take().is_empty());
    assert_eq!(notes.close(), (None, None));
}

#[test]
fn ended_attempts_do_not_pile_up() {
    let queue = Arc::<ReportQueue>::default();
    for number in 0..5 * CONCURRENCY {
        let task = TaskId::mint(Timestamp::EPOCH, u32::try_from(number).unwrap(), 1);
        let notes = Notes::new(&queue, task, 1);
        notes.log("x");
        if number > 0 {
            notes.close();
        }
        assert!(queue.queued.lock().len() <= 2 * CONCURRENCY);
    }
    assert_eq!(
        queue.take().iter().filter_map(Notes::pending_report).count(),
        1,
        "the first one is open"
    );
}
