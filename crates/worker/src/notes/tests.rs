use duly_core::time::Timestamp;

use super::*;

fn notes() -> (Arc<Board>, Arc<Notes>) {
    let board = Arc::<Board>::default();
    let notes = Notes::on(&board, TaskId::mint(Timestamp::EPOCH, 1, 1), 3);
    (board, notes)
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
    let log = notes.state.lock().unheard().1.unwrap();
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
fn what_was_heard_is_not_told_again() {
    let (board, notes) = notes();
    notes.log("one");
    notes.progress(Progress::new(1, None));
    let listed = board.take();
    assert_eq!(listed.len(), 1, "listed once");
    let first = listed[0].news().unwrap();
    assert_eq!(first.item.log, chunk(0, "one\n"));
    assert_eq!(first.item.progress, Some(Progress::new(1, None)));
    // What is noted before the answer comes is news of its own.
    notes.log("two");
    first.heard();
    let second = board.take()[0].news().unwrap();
    assert_eq!((&second.item.progress, &second.item.log), (&None, &chunk(4, "two\n")));
    // An answer that never comes leaves it to be told again.
    notes.progress(Progress::new(2, None));
    let third = board.take()[0].news().unwrap();
    assert_eq!(
        (third.item.progress.as_ref().unwrap().done, &third.item.log),
        (2, &second.item.log)
    );
    second.heard();
    assert_eq!(notes.close(), (Some(Progress::new(2, None)), None));
    // An answer that comes after the end changes nothing.
    third.heard();
    assert_eq!(notes.close(), (None, None));
}

#[test]
fn a_checkpoint_travels_until_it_was_heard() {
    let (board, notes) = notes();
    let checkpoint = |text: &str| Some(Arc::from(text));
    notes.checkpoint("7".into());
    notes.progress(Progress::new(1, None));
    let news = board.take()[0].news().unwrap();
    let told = Progress { checkpoint: checkpoint("7"), ..Progress::new(1, None) };
    assert_eq!(news.item.progress, Some(told));
    news.heard();
    notes.progress(Progress::new(2, None));
    let news = board.take()[0].news().unwrap();
    assert_eq!(news.item.progress, Some(Progress::new(2, None)));
    notes.checkpoint("8".into());
    news.heard();
    let left = Progress { checkpoint: checkpoint("8"), ..Progress::new(2, None) };
    assert_eq!(notes.close().0, Some(left));
}

#[test]
fn an_attempt_that_is_over_tells_no_news() {
    let (board, notes) = notes();
    notes.log("one");
    let listed = board.take();
    notes.close();
    assert!(listed[0].news().is_none());
    notes.log("too late");
    listed[0].relist();
    assert!(board.take().is_empty());
    assert_eq!(notes.close(), (None, None));
}

#[test]
fn attempts_that_are_over_do_not_pile_up() {
    let board = Arc::<Board>::default();
    for number in 0..5 * CONCURRENCY {
        let task = TaskId::mint(Timestamp::EPOCH, u32::try_from(number).unwrap(), 1);
        let notes = Notes::on(&board, task, 1);
        notes.log("x");
        if number > 0 {
            notes.close();
        }
        assert!(board.listed.lock().len() <= 2 * CONCURRENCY);
    }
    assert_eq!(board.take().iter().filter_map(Notes::news).count(), 1, "the first one is open");
}
