//! Every guarantee names the tests that prove it, and every named test exists.

use crate::markdown::section;
use crate::tree::{TextFile, files_ending, read};

/// The names in `[test: …]`.
fn cited(text: &str) -> Vec<&str> {
    let starts = text.match_indices("[test: ");
    starts.map(|(at, mark)| text[at + mark.len()..].split(']').next().unwrap_or("")).collect()
}

/// Why the name leads nowhere.
fn missing(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        [path, test] if path.ends_with(".rs") => missing_test(path, test),
        [store, area, case] => missing_case(store, area, case),
        _ => Some(format!("{name}: write path.rs::test or store::area::case")),
    }
}

/// The tests of `tests/faults.rs` may have become several files below `tests/faults/`.
fn missing_test(path: &str, test: &str) -> Option<String> {
    let directory = format!("{}/", path.trim_end_matches(".rs"));
    let is_meant = |file: &&TextFile| file.path == path || file.path.starts_with(&directory);
    let files = files_ending(".rs");
    let exists = files.iter().filter(is_meant).any(|file| has_test(&file.text, test));
    (!exists).then(|| format!("{path} has no test {test}"))
}

/// Whether a function of this name stands below a test's attribute.
fn has_test(text: &str, test: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_function = |line: &str| line.contains(&format!("fn {test}("));
    let attributes = |at: usize| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        above.map(|line| line.trim_start_matches("#["))
    };
    let is_test = |line: &str| line.starts_with("test]") || line.starts_with("tokio::test");
    lines.iter().enumerate().any(|(at, line)| is_function(line) && attributes(at).any(is_test))
}

fn missing_case(store: &str, area: &str, case: &str) -> Option<String> {
    let suites = read("crates/store/tests/conformance.rs");
    if !suites.contains(&format!("conformance!({store}, ")) {
        return Some(format!("no store {store} runs the suite"));
    }
    let suite = read("crates/store/src/conformance.rs");
    let start = suite.find(&format!("$backend, {area}:"));
    let listed = start.map(|start| suite[start..].split(");").next().unwrap_or(""));
    let is_listed = |cases: &str| cases.split(',').any(|name| name.trim().ends_with(case));
    let body = read(&format!("crates/store/src/conformance/{area}.rs"));
    let exists = listed.is_some_and(is_listed) && body.contains(&format!("pub async fn {case}("));
    (!exists).then(|| format!("the suite has no case {area}::{case}"))
}

#[test]
fn every_cited_test_exists() {
    let text = read("docs/guarantees.md");
    let names = cited(&text);
    assert!(names.len() > 20, "only {} tests are cited", names.len());
    let missing: Vec<_> = names.into_iter().filter_map(missing).collect();
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn every_guarantee_cites_a_test() {
    let text = read("docs/guarantees.md");
    let kept = section(&text, "## What holds today");
    let guarantees: Vec<&str> = kept.split("\n### ").skip(1).collect();
    assert!(guarantees.len() >= 8, "only {} guarantees", guarantees.len());
    for guarantee in guarantees {
        assert!(!cited(guarantee).is_empty(), "unproven: {}", guarantee.lines().next().unwrap());
    }
}

#[test]
fn names_that_lead_nowhere_are_found() {
    let own = "crates/testkit/tests/house/guarantees.rs";
    assert_eq!(missing(&format!("{own}::names_that_lead_nowhere_are_found")), None);
    assert_eq!(missing("sqlite::claim::two_claimers_never_share_a_task"), None);
    for name in [
        "sqlite::claim::no_such_case",
        "nosuchstore::claim::two_claimers_never_share_a_task",
        "crates/no/such/file.rs::a_test",
        &format!("{own}::missing_case"),
        "a_bare_name",
    ] {
        assert!(missing(name).is_some(), "{name}");
    }
}
