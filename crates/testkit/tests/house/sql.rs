//! No statement is built from what a client sent: values are parameters of statements, and only parts
//! that the program itself spells are put into their text.

use std::collections::BTreeSet;

use crate::tree::{TextFile, files_ending};

/// Begins a statement, or a part of one.
const SQL: [&str; 16] = [
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE ",
    "WITH ",
    "FROM ",
    "WHERE ",
    "ORDER BY ",
    "LIMIT ",
    "SET ",
    "NOTIFY ",
    "LISTEN ",
    "CREATE ",
    "DROP ",
    "ALTER ",
    "AND ",
];
/// Parts of statements that stand in variables.
const PARTS: [&str; 8] =
    ["also", "columns", "condition", "passed", "rows", "table", "tables", "verdict"];
/// Other things in statements: where, and which.
const OTHERS: [(&str, &str); 12] = [
    // The statement's own name, in the comment that begins it.
    ("crates/store/src/postgres/dead_letters.rs", "name"),
    ("crates/store/src/postgres/filter.rs", "name"),
    ("crates/store/src/postgres/keys.rs", "name"),
    ("crates/store/src/postgres/schedules.rs", "name"),
    ("crates/store/src/postgres/tenants.rs", "name"),
    ("crates/store/src/sqlite/schedules.rs", "name"),
    // Ids and numbers of the program.
    ("crates/store/src/postgres/notifier.rs", "text"),
    ("crates/store/src/postgres/pool.rs", "now"),
    // A table of the program, a condition, and a statement that is continued.
    ("crates/store/src/postgres/task_state/deleted.rs", ""),
    // Conditions, and the number of a parameter.
    ("crates/store/src/postgres/audit.rs", ""),
    ("crates/store/src/sqlite/dead_letters/groups.rs", "lane"),
    ("crates/store/src/postgres/verb/schedule.rs", ""),
];
/// Files whose statements no client reaches: databases that tests and measurements make for themselves.
const OWN_DATABASE: [&str; 4] = [
    "crates/store/src/postgres/database.rs",
    "crates/store/src/postgres/limit.rs",
    "crates/store/src/postgres/scratch.rs",
    "crates/store/src/sqlite/limit.rs",
];

/// The names in braces of each `format!` that makes SQL, with the file and the line.
fn inserted(files: &[TextFile]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|file| is_judged(&file.path)) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or("");
        for (at, _) in code.match_indices("format!(").chain(code.match_indices("write!(")) {
            let Some(text) = literal(&code[at..]) else { continue };
            if SQL.iter().any(|word| text.contains(word)) {
                let names = placeholders(text).into_iter().filter(|name| !is_constant(name));
                found.extend(names.map(|name| (file.path.clone(), name.to_owned())));
            }
        }
    }
    found
}

fn is_judged(path: &str) -> bool {
    path.starts_with("crates/store/src/")
        && !path.ends_with("/tests.rs")
        && !path.contains("/conformance")
        && !OWN_DATABASE.contains(&path)
}

/// The first string in a call, if it begins before the call ends.
fn literal(call: &str) -> Option<&str> {
    let start = call.find('"')?;
    if call[..start].contains([';', ')']) {
        return None;
    }
    let text = &call[start + 1..];
    let mut is_escaped = false;
    let end = text.find(|letter| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    })?;
    Some(&text[..end])
}

/// The names in braces; an empty one is an argument by its position.
fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            rest = after;
            continue;
        }
        let end = rest.find('}').unwrap_or(rest.len());
        names.push(rest[..end].split(':').next().unwrap_or(""));
        rest = &rest[end..];
    }
    names
}

fn is_constant(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

#[test]
fn s22_statements_hold_only_what_the_program_spells() {
    let found = inserted(&files_ending(".rs"));
    let is_known = |(path, name): &&(String, String)| {
        PARTS.contains(&name.as_str()) || OTHERS.contains(&(path, name))
    };
    let unknown: Vec<_> = found.iter().filter(|it| !is_known(it)).collect();
    assert!(unknown.is_empty(), "put values into parameters, not into the text: {unknown:#?}");
    let is_used = |(path, name): &&(&str, &str)| found.contains(&((*path).into(), (*name).into()));
    let unused: Vec<_> = OTHERS.iter().filter(|it| !is_used(it)).collect();
    assert!(unused.is_empty(), "no statement holds {unused:?}");
}

#[test]
fn a_value_in_a_statement_is_noticed() {
    let names = |text: &str| {
        let path = "crates/store/src/sqlite/x.rs".to_owned();
        let found = inserted(&[TextFile { path, text: text.to_owned() }]);
        found.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(r#"format!("SELECT * FROM task WHERE tenant = '{tenant}'")"#), ["tenant"]);
    assert_eq!(names(r#"format!("{a} ORDER BY {}", x)"#), ["", "a"]);
    assert_eq!(names("format!(\n    \"UPDATE task\n SET x = {x:?}\"\n)"), ["x"]);
    assert!(names(r#"format!("SELECT {COLUMNS} FROM {{x}}")"#).is_empty());
    assert!(names(r#"format!("the task {id} is not there")"#).is_empty());
}
