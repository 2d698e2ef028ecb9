//! One writer of tasks per store: only the modules named `task_state` store tasks, change their status
//! or delete them. What depends on transitions attaches there and misses none.

use crate::tree::{TextFile, files};

/// Where the writers are. Migrations are not looked at: the applied ones never change.
const WRITERS: [&str; 4] = [
    "crates/store/src/sqlite/task_state",
    "crates/store/src/memory/task_state",
    "crates/store/src/postgres/task_state",
    "crates/store/functions/postgres/task_state",
];

/// Files that write tasks to a database of their own, to measure how fast a database can be.
const OWN_DATABASE: [&str; 2] =
    ["crates/store/src/sqlite/limit.rs", "crates/store/src/postgres/limit.rs"];

/// One writer outside: its file, its line and what it writes.
#[derive(Debug, PartialEq, Eq)]
struct Writer {
    path: String,
    line: usize,
    what: &'static str,
}

/// What production code of the stores writes outside `task_state`.
fn writers(files: &[TextFile]) -> Vec<Writer> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_store(&file.path)) {
        let text = production(file);
        let words = words(text);
        found.extend(sql_writers(&words).map(|(line, what)| (file, line, what)));
        if file.path.starts_with("crates/store/src/memory") {
            found.extend(memory_writers(text, &words).map(|(line, what)| (file, line, what)));
        }
    }
    let writer =
        |(file, line, what): (&TextFile, _, _)| Writer { path: file.path.clone(), line, what };
    found.into_iter().map(writer).collect()
}

fn is_store(path: &str) -> bool {
    let is_inside =
        path.starts_with("crates/store/src/") || path.starts_with("crates/store/functions/");
    let is_source = path.ends_with(".rs") || path.ends_with(".sql");
    let is_excused =
        WRITERS.iter().any(|writer| path.starts_with(writer)) || OWN_DATABASE.contains(&path);
    is_inside && is_source && !is_excused && !path.ends_with("/tests.rs")
}

/// A file without its tests.
fn production(file: &TextFile) -> &str {
    file.text.find("#[cfg(test)]").map_or(&file.text, |end| &file.text[..end])
}

/// A word or a sign, and the line it stands in. A name in a schema is one word; the text of a
/// statement ends with its quotation mark. Comments of Rust are left out.
type Word = (usize, String);

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = if line.trim_start().starts_with("//") { "" } else { line };
        let mut is_within = false;
        for letter in line.chars() {
            let is_letter = letter.is_alphanumeric() || letter == '_' || letter == '.';
            if is_letter && is_within {
                let (_, word) = words.last_mut().expect("the word has begun");
                word.extend(letter.to_lowercase());
            } else if !letter.is_whitespace() {
                words.push((number + 1, letter.to_lowercase().collect()));
            }
            is_within = is_letter;
        }
    }
    words
}

fn is_task(word: &str) -> bool {
    matches!(word, "task" | "duly.task")
}

fn sql_writers(words: &[Word]) -> impl Iterator<Item = (usize, &'static str)> {
    let at = |place: usize| words.get(place).map_or("", |(_, word)| word.as_str());
    (0..words.len()).filter_map(move |place| {
        let table = place + if at(place + 2) == "only" { 3 } else { 2 };
        let what = match (at(place), at(place + 1)) {
            ("insert", "into") if is_task(at(table)) => "INSERT INTO task",
            ("delete", "from") if is_task(at(table)) => "DELETE FROM task",
            ("update", _) if sets_status(&words[place..]) => "UPDATE task SET status",
            _ => return None,
        };
        Some((words[place].0, what))
    })
}

/// Whether an UPDATE is one of tasks and names the status before its WHERE.
fn sets_status(words: &[Word]) -> bool {
    let mut words = words.iter().map(|(_, word)| word.as_str()).skip(1).peekable();
    words.next_if_eq(&"only");
    if !words.next().is_some_and(is_task) {
        return false;
    }
    let (mut depth, mut is_set) = (0, false);
    for word in words {
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            "\"" | ";" => return false,
            "where" if depth == 0 => return false,
            "set" => is_set = true,
            _ if is_set && (word == "status" || word.ends_with(".status")) => return true,
            _ => {}
        }
    }
    false
}

/// The model is Rust: it writes a status by assignment or in a literal, and tasks into their map.
fn memory_writers(text: &str, words: &[Word]) -> impl Iterator<Item = (usize, &'static str)> {
    let lines = text.lines().enumerate().filter_map(|(number, line)| {
        let after = line.split(".status =").nth(1);
        let what = if after.is_some_and(|rest| !rest.starts_with('=')) {
            "a status"
        } else if line.contains("tasks.insert(") {
            "a new task"
        } else if line.contains("tasks.remove(") || line.contains("tasks.retain(") {
            "a deleted task"
        } else {
            return None;
        };
        Some((number + 1, what))
    });
    let is = |place: usize, word: &str| words.get(place).is_some_and(|(_, it)| it == word);
    let literals = (0..words.len()).filter(move |place| is(*place, "task") && is(place + 1, "{"));
    let with_status = literals.filter(|place| names_status(&words[place + 2..]));
    let literals = with_status.map(|place| (words[place].0, "a status"));
    lines.chain(literals).collect::<Vec<_>>().into_iter()
}

/// Whether a struct literal has a field `status`.
fn names_status(words: &[Word]) -> bool {
    let mut depth = 1;
    for (_, word) in words {
        match word.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "status" if depth == 1 => return true,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    false
}

#[test]
fn tasks_are_written_in_one_module_per_store() {
    let outside = writers(&files());
    assert!(outside.is_empty(), "move these into task_state: {outside:#?}");
}

#[test]
fn the_writers_are_looked_at() {
    let writes = |file: &TextFile| sql_writers(&words(&file.text)).next().is_some();
    let sqlite = files().into_iter().filter(|file| file.path.starts_with(WRITERS[0]));
    assert!(sqlite.filter(writes).count() >= 6, "the scanner does not know how statements look");
}

#[test]
fn planted_writers_are_found() {
    for (path, text, what) in [
        ("src/sqlite/a.rs", "\"/* a */ INSERT INTO task (id) VALUES (?)\"", "INSERT INTO task"),
        ("src/postgres/a.rs", "\"INSERT INTO duly.task (id)\n SELECT 1\"", "INSERT INTO task"),
        ("src/sqlite/a.rs", "\"DELETE FROM\n   task WHERE id = ?\"", "DELETE FROM task"),
        ("functions/postgres/a.sql", "delete from only duly.task t;", "DELETE FROM task"),
        ("src/sqlite/a.rs", "\"UPDATE task SET run = 1, status = ?\"", "UPDATE task SET status"),
        (
            "functions/postgres/a.sql",
            "UPDATE duly.task t\nSET run = (SELECT 1 WHERE true),\n    status = 2",
            "UPDATE task SET status",
        ),
        ("src/memory/a.rs", "task.status = Status::Failed;", "a status"),
        ("src/memory.rs", "*task = Task {\n status,\n ..task.clone() }", "a status"),
        ("src/memory/a.rs", "self.tasks.insert(id, task);", "a new task"),
        ("src/memory/a.rs", "self.tasks.remove(&id);", "a deleted task"),
    ] {
        let planted = TextFile { path: format!("crates/store/{path}"), text: text.to_owned() };
        let writer = Writer { path: planted.path.clone(), line: 1, what };
        assert_eq!(writers(&[planted]), [writer], "{text}");
    }
}

#[test]
fn what_writes_no_status_is_left_alone() {
    for (path, text) in [
        ("src/sqlite/task_state/a.rs", "INSERT INTO task (id) VALUES (?)"),
        ("functions/postgres/task_state_end.sql", "UPDATE duly.task SET status = 3"),
        ("migrations/postgres/0001.sql", "INSERT INTO duly.task (id) VALUES (1)"),
        ("src/sqlite/a.rs", "\"UPDATE task SET run_at = ? WHERE id = ? AND status = 1\""),
        ("src/sqlite/a.rs", "\"UPDATE session SET status = 1\"; \"DELETE FROM task_log\""),
        ("src/sqlite/a.rs", "fn f() {}\n#[cfg(test)]\nmod tests { \"DELETE FROM task\" }"),
        ("src/sqlite/a/tests.rs", "\"DELETE FROM task\""),
        ("src/sqlite/a.rs", "// INSERT INTO task"),
        ("src/memory/a.rs", "task.status == Status::Failed; Controlled::Conflict { status }"),
        ("src/memory/a.rs", "Task { worker: None, ..task.clone() }"),
    ] {
        let planted = TextFile { path: format!("crates/store/{path}"), text: text.to_owned() };
        assert_eq!(writers(&[planted]), [], "{text}");
    }
}
