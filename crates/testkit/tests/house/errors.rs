//! Every code that a user can meet is explained, and nothing is explained that cannot be met.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown::{section, table_rows, unticked};
use crate::tree::{TextFile, files_ending, read};

/// Where codes are spelled that callers, owners of tasks or people at a terminal see.
const SOURCES: [&str; 6] = [
    "crates/api/src/",
    "crates/core/src/",
    "crates/engine/src/",
    "crates/store/src/",
    "crates/worker/src/",
    "crates/client/src/source/finishes.rs",
];
/// Where the document lists codes.
const HEADINGS: [&str; 6] = [
    "Problem codes",
    "Field codes",
    "Codes of SQL functions",
    "Streams",
    "Warnings",
    "Task errors",
];
/// Upper-case texts that are no codes: the states of a task, words of SQL, and what the compiler and
/// the environment are asked for.
const NO_CODES: [&str; 18] = [
    "ACTIVE",
    "BEGIN",
    "BLOCKED",
    "CANCELLED",
    "CARGO_PKG_VERSION",
    "CHECKPOINT",
    "COMMIT",
    "DULY_TEST_POSTGRES",
    "FAILED",
    "NULL",
    "PASSIVE",
    "PAUSED",
    "PENDING",
    "RESTART",
    "ROLLBACK",
    "RUNNING",
    "SUCCESS",
    "UPPERCASE",
];

fn document() -> String {
    read("docs/errors.md")
}

/// The problem codes and their statuses, from the one table in the source.
fn problems_in_source() -> BTreeMap<String, u16> {
    let source = read("crates/api/src/error.rs");
    let table = source.split("\ncodes! {\n").nth(1).and_then(|rest| rest.split("\n}").next());
    let entries = table.expect("the table of codes").split(';');
    let entry = |entry: &str| {
        let words: Vec<&str> = entry.split_whitespace().collect();
        let (code, status) = (words.get(1)?.trim_matches('"'), status(words.get(2)?));
        Some((code.to_owned(), status))
    };
    entries.filter_map(entry).collect()
}

fn status(name: &str) -> u16 {
    match name {
        "BAD_REQUEST" => 400,
        "UNAUTHORIZED" => 401,
        "FORBIDDEN" => 403,
        "NOT_FOUND" => 404,
        "METHOD_NOT_ALLOWED" => 405,
        "REQUEST_TIMEOUT" => 408,
        "PAYLOAD_TOO_LARGE" => 413,
        "PRECONDITION_FAILED" => 412,
        "PRECONDITION_REQUIRED" => 428,
        "CONFLICT" => 409,
        "UNSUPPORTED_MEDIA_TYPE" => 415,
        "UNPROCESSABLE_ENTITY" => 422,
        "TOO_MANY_REQUESTS" => 429,
        "INTERNAL_SERVER_ERROR" => 500,
        "SERVICE_UNAVAILABLE" => 503,
        _ => panic!("add the number of the status {name} to this test"),
    }
}

fn first_cells(heading: &str) -> BTreeSet<String> {
    let text = document();
    let rows = table_rows(section(&text, heading));
    assert!(rows.iter().all(|row| row.iter().all(|cell| !cell.is_empty())), "{heading}: a gap");
    rows.into_iter().map(|row| unticked(&row[0]).to_owned()).collect()
}

/// Literals such as `"OUT_OF_RANGE"` outside of tests.
fn literals(files: &[TextFile]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|file| SOURCES.iter().any(|at| file.path.starts_with(at))) {
        let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/conformance");
        let code = file.text.split("#[cfg(test)]").next().unwrap_or("");
        let lines = code.lines().filter(|line| !is_test && !line.trim_start().starts_with("//"));
        found.extend(lines.flat_map(|line| line.split('"').skip(1).step_by(2)).filter_map(as_code));
    }
    found
}

fn as_code(text: &str) -> Option<String> {
    let is_code = text.len() > 3 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    (is_code && !NO_CODES.contains(&text)).then(|| text.to_owned())
}

#[test]
fn every_problem_is_listed_with_its_status() {
    let text = document();
    let rows = table_rows(section(&text, "## Problem codes"));
    let row = |row: Vec<String>| (unticked(&row[0]).to_owned(), row[1].parse().expect("a status"));
    let listed: BTreeMap<String, u16> = rows.into_iter().map(row).collect();
    let known = problems_in_source();
    assert!(known.len() > 20, "only {} codes found in the source", known.len());
    assert_eq!(listed, known);
}

#[test]
fn every_code_in_the_sources_is_listed_and_no_other() {
    let listed: BTreeSet<String> =
        HEADINGS.into_iter().flat_map(|heading| first_cells(&format!("## {heading}"))).collect();
    assert_eq!(listed, literals(&files_ending(".rs")));
}

#[test]
fn a_new_code_is_noticed() {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let source = file("crates/worker/src/x.rs", "fail(\"NEW_CODE\", \"words\");\n// \"NOT_THIS\"");
    assert_eq!(literals(&[source]), BTreeSet::from(["NEW_CODE".to_owned()]));
    assert!(literals(&[file("crates/worker/src/x/tests.rs", "\"NEW_CODE\"")]).is_empty());
}

#[test]
fn every_exit_code_is_listed() {
    let source = read("crates/cli/src/exit.rs");
    let number = |line: &str| line.split("=> ").nth(1)?.trim_end_matches(',').parse().ok();
    let known: BTreeSet<u8> = source.lines().filter_map(number).collect();
    let listed = first_cells("## Exit codes");
    assert_eq!(listed, known.iter().map(u8::to_string).collect());
}
