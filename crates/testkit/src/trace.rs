//! Reads what strace has written, to prove an order of system calls.
//!
//! A traced thread stands still at each entry and exit until strace has noted it, so the order of
//! the notes is an order in which things happened; their times are not needed.

use std::collections::HashMap;

/// The arguments for strace that [`answers`] relies on; the file follows.
pub const STRACE: [&str; 10] = [
    "strace",
    "-D",
    "-f",
    "-ttt",
    "-y",
    "-s",
    "64",
    "-e",
    "trace=fdatasync,fsync,read,recvfrom,write,writev,sendto,sendmsg",
    "-o",
];

/// One system call. Places are numbers of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    name: String,
    /// The first argument's file, such as `socket:[17]`.
    file: String,
    arguments: String,
    result: i64,
    began: usize,
    ended: usize,
}

/// An answer `201 Created` and whether a sync of the log lies before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Where in the trace the last bytes of the request had been read.
    pub read: usize,
    /// Where the write of the answer began.
    pub written: usize,
    /// Whether a sync of the log began after the one and had succeeded before the other.
    pub is_synced: bool,
}

/// Every `201` of a trace.
pub fn answers(trace: &str) -> Vec<Answered> {
    let calls = calls(trace);
    let is_sync = |call: &&Call| {
        matches!(call.name.as_str(), "fdatasync" | "fsync")
            && call.file.ends_with("-wal")
            && call.result == 0
    };
    let syncs: Vec<_> = calls.iter().filter(is_sync).map(|call| (call.began, call.ended)).collect();
    let mut reads: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for call in by_time(&calls) {
        match call {
            Moment::Ended(call) if is_read(call) => drop(reads.insert(&call.file, call.ended)),
            Moment::Began(call) if is_answer(call) => {
                let read = reads.get(call.file.as_str()).copied().unwrap_or(usize::MAX);
                let covers = |&(began, ended): &(usize, usize)| began > read && ended < call.began;
                let is_synced = syncs.iter().any(covers);
                found.push(Answered { read, written: call.began, is_synced });
            }
            Moment::Ended(_) | Moment::Began(_) => {}
        }
    }
    found
}

fn is_read(call: &Call) -> bool {
    matches!(call.name.as_str(), "read" | "recvfrom")
        && call.file.starts_with("socket:")
        && call.result > 0
}

fn is_answer(call: &Call) -> bool {
    matches!(call.name.as_str(), "write" | "writev" | "sendto" | "sendmsg")
        && call.file.starts_with("socket:")
        && call.arguments.contains("\"HTTP/1.1 201")
}

enum Moment<'a> {
    Began(&'a Call),
    Ended(&'a Call),
}

/// Beginnings and ends in their order.
fn by_time(calls: &[Call]) -> Vec<Moment<'_>> {
    let mut places: Vec<_> = calls
        .iter()
        .flat_map(|call| [(call.began, 0, call), (call.ended, 1, call)])
        .map(|(at, end, call)| {
            (at, end, if end == 0 { Moment::Began(call) } else { Moment::Ended(call) })
        })
        .collect();
    places.sort_by_key(|(at, end, _)| (*at, *end));
    places.into_iter().map(|(_, _, place)| place).collect()
}

/// All calls that returned, with the halves of interrupted lines put together.
fn calls(trace: &str) -> Vec<Call> {
    let mut unfinished: HashMap<&str, (usize, String)> = HashMap::new();
    let mut calls = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        // Thread, time, call.
        let mut parts = line.split_whitespace();
        let (Some(thread), Some(time)) = (parts.next(), parts.next()) else { continue };
        let Some((_, text)) = line.split_once(time) else { continue };
        let text = text.trim_start();
        if let Some(begun) = text.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, (at, begun.to_owned()));
        } else if let Some(rest) = text.strip_prefix("<... ") {
            let Some((_, rest)) = rest.split_once(" resumed>") else { continue };
            let Some((began, begun)) = unfinished.remove(thread) else { continue };
            calls.extend(call(&(begun + rest), began, at));
        } else {
            calls.extend(call(text, at, at));
        }
    }
    calls
}

fn call(text: &str, began: usize, ended: usize) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let (_, file) = arguments.split_once('<')?;
    let (file, _) = file.split_once('>')?;
    let result = result.split_whitespace().next()?.parse().ok()?;
    Some(Call {
        name: name.to_owned(),
        file: file.to_owned(),
        arguments: arguments.to_owned(),
        result,
        began,
        ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synced(lines: &[&str]) -> Vec<bool> {
        answers(&lines.join("\n")).iter().map(|answer| answer.is_synced).collect()
    }

    const READ: &str =
        r#"7 1.000001 recvfrom(9<socket:[1]>, "POST /v1"..., 8192, 0, NULL, NULL) = 99"#;
    const SYNC: &str = "8  1.000002 fdatasync(5</d/duly.db-wal>) = 0";
    const ANSWER: &str =
        r#"7 1.000003 sendto(9<socket:[1]>, "HTTP/1.1 201 Created\r\n"..., 300, 0, NULL, 0) = 300"#;

    #[test]
    fn a_sync_between_request_and_answer_counts() {
        assert_eq!(synced(&[READ, SYNC, ANSWER]), [true]);
        assert_eq!(synced(&[READ, SYNC, ANSWER, READ, SYNC, ANSWER]), [true, true]);
    }

    #[test]
    fn a_sync_at_another_time_or_of_another_file_does_not() {
        assert_eq!(synced(&[SYNC, READ, ANSWER]), [false]);
        assert_eq!(synced(&[READ, ANSWER, SYNC]), [false]);
        assert_eq!(synced(&[SYNC, ANSWER]), [false]);
        assert_eq!(synced(&[READ, "8 1.0 fdatasync(5</d/duly.db>) = 0", ANSWER]), [false]);
        let failed = "8 1.0 fdatasync(5</d/duly.db-wal>) = -1 EIO (Input/output error)";
        assert_eq!(synced(&[READ, failed, ANSWER]), [false]);
        assert_eq!(synced(&[&READ.replace("[1]", "[2]"), SYNC, ANSWER]), [false]);
    }

    #[test]
    fn interrupted_calls_last_from_their_first_half_to_their_second() {
        let begun = "8 1.0 fdatasync(5</d/duly.db-wal> <unfinished ...>";
        let ended = "8 1.1 <... fdatasync resumed>)      = 0";
        assert_eq!(synced(&[READ, begun, ended, ANSWER]), [true]);
        assert_eq!(synced(&[begun, READ, ended, ANSWER]), [false]);
        assert_eq!(synced(&[READ, begun, ANSWER, ended]), [false]);
        let other = "9 1.0 fdatasync(5</d/duly.db-wal> <unfinished ...>";
        assert_eq!(synced(&[begun, READ, other, ended, ANSWER]), [false]);
    }

    #[test]
    fn reads_that_bring_nothing_do_not_count() {
        let empty = r#"7 1.0 recvfrom(9<socket:[1]>, 0x7f, 8192, 0, NULL, NULL) = -1 EAGAIN (x)"#;
        assert_eq!(synced(&[READ, SYNC, empty, ANSWER]), [true]);
    }
}
