use duly_core::id::TaskId;
use duly_core::lease::Lease;
use duly_core::limits::LOG_BYTES;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::time::Timestamp;

use super::*;

fn context() -> Context {
    let now = Timestamp::from_millis(1_900_000_000_000);
    let task_type = TypeName::new("shell").unwrap();
    let (tenant, queue) = (TenantName::default_tenant(), QueueName::default_queue());
    Context::new(Lease {
        task: TaskId::mint(now, 7, 8),
        epoch: 1,
        run: 1,
        attempt: 1,
        retries: 3,
        lane: Lane { tenant, queue, task_type },
        timeout: None,
        granted_at: now,
        run_at: now,
        payload: "null".into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    })
}

#[test]
fn lines_are_logged_when_they_end_and_the_last_when_all_does() {
    let context = context();
    let mut output = Output::new(&context);
    output.add(b"one\r\ntw");
    assert_eq!(context.logged().as_deref(), Some("one\n"));
    output.add(b"o\n\n\xffthr");
    assert_eq!(context.logged().as_deref(), Some("one\ntwo\n\n"));
    assert_eq!(output.last_line(), "two", "a blank line says nothing");
    output.add(b"ee");
    output.end();
    assert_eq!(output.last_line(), "\u{fffd}three");
    assert_eq!(output.tail(), "one\r\ntwo\n\n\u{fffd}three");
    output.add(b"Password: ");
    drop(output);
    assert_eq!(context.logged().as_deref(), Some("one\ntwo\n\n\u{fffd}three\nPassword:\n"));
}

#[test]
fn memory_is_flat_for_endless_output() {
    let context = context();
    let mut output = Output::new(&context);
    let (no_line, many_lines) = ([b'x'; CHUNK_BYTES], [b'\n'; CHUNK_BYTES]);
    for chunk in [no_line, many_lines, no_line] {
        for _ in 0..100 {
            output.add(&chunk);
        }
        let kept = output.line.capacity() + output.tail.capacity() + output.last_line.capacity();
        assert!(kept < 64 * 1024, "{kept} bytes");
        assert_eq!(output.tail().len(), TAIL_BYTES);
    }
    output.end();
    let log = context.logged().unwrap();
    assert!(log.len() <= LOG_BYTES);
    assert!(log.ends_with("xx…\n"), "{log}");
}

#[test]
fn a_tail_is_whole_characters_and_never_too_long() {
    let context = context();
    for (printed, ends_with) in
        [("ä".repeat(3 * TAIL_BYTES) + "x", "äx"), ("\0".repeat(2 * TAIL_BYTES), "\u{fffd}")]
    {
        let mut output = Output::new(&context);
        output.add(printed.as_bytes());
        let tail = output.tail();
        assert!((TAIL_BYTES - 3..=TAIL_BYTES).contains(&tail.len()), "{}", tail.len());
        assert!(tail.ends_with(ends_with) && !tail.contains('\0'));
        assert_eq!(tail.contains('\u{fffd}'), ends_with == "\u{fffd}");
    }
}
