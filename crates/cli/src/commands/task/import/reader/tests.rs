use super::*;

fn batches(text: &str, from: Position) -> Vec<Batch> {
    let input = io::Cursor::new(text.as_bytes()[usize::try_from(from.offset).unwrap()..].to_vec());
    let mut batches = start(Box::new(input), from, "x".to_owned(), false).unwrap();
    std::iter::from_fn(|| batches.blocking_recv()).map(Result::unwrap).collect()
}

fn keys(batch: &Batch) -> Vec<&str> {
    batch.tasks.iter().filter_map(|task| task.idempotency_key.as_deref()).collect()
}

#[test]
fn lines_get_keys_by_their_numbers_unless_they_have_one() {
    let text = concat!(
        "\u{feff}{\"type\":\"a\"}\r\n",
        "\n  \n",
        "{\"type\":\"a\",\"idempotencyKey\":\"own\"}\n",
        "oops\n",
        "{\"type\":\"a\"}",
    );
    let read = batches(text, Position::default());
    assert_eq!(read.len(), 1);
    assert_eq!(keys(&read[0]), ["import-x-1", "own", "import-x-6"]);
    assert_eq!(read[0].bad[0].before.line + 1, 5);
    assert_eq!(read[0].end, Position { offset: text.len() as u64, line: 6 });
    let from = read[0].positions[1];
    assert_eq!(keys(&batches(text, from)[0]), ["own", "import-x-6"], "the same from the middle");
}

#[test]
fn batches_are_bounded_in_number_and_size() {
    let text = "{\"type\":\"a\"}\n".repeat(STORE_BATCH * 2 + 1);
    let counts: Vec<_> =
        batches(&text, Position::default()).iter().map(|batch| batch.tasks.len()).collect();
    assert_eq!(counts, [STORE_BATCH, STORE_BATCH, 1]);
    let line = format!("{{\"type\":\"a\",\"payload\":\"{}\"}}\n", "x".repeat(1024 * 1024));
    let counts: Vec<_> = batches(&line.repeat(8), Position::default())
        .iter()
        .map(|batch| batch.tasks.len())
        .collect();
    assert_eq!(counts, [3, 3, 2]);
    let text = "oops\n".repeat(STORE_BATCH + 1);
    assert_eq!(batches(&text, Position::default()).len(), 2, "bad lines take room as well");
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_not_kept() {
    let long = "x".repeat(BODY_BYTES + 1);
    for text in [format!("{long}\n{{\"type\":\"a\"}}\n"), format!("{{\"type\":\"a\"}}\n{long}")] {
        let read = batches(&text, Position::default());
        assert_eq!((read[0].tasks.len(), read[0].bad.len()), (1, 1));
        assert_eq!(read[0].bad[0].problem.code, "BODY_TOO_LARGE");
        assert_eq!(read[0].end, Position { offset: text.len() as u64, line: 2 });
    }
}

#[test]
fn a_stream_is_not_held_back_until_a_batch_is_full() {
    let (reader, mut writer) = io::pipe().unwrap();
    let from = Position::default();
    let mut batches = start(Box::new(reader), from, "x".to_owned(), true).unwrap();
    for number in 1..=2 {
        io::Write::write_all(&mut writer, b"{\"type\":\"a\"}\n").unwrap();
        let batch = batches.blocking_recv().unwrap().unwrap();
        assert_eq!(keys(&batch), [format!("import-x-{number}")]);
    }
}
