//! Style that a machine can judge. Each rule is a function from files to complaints, so that it is
//! tried on a planted violation as well as on the tree.

use crate::tree::{TextFile, files, files_ending, read, root};

/// Lines of a file. Longer ones hide what they are about.
const FILE_LINES: usize = 800;
/// Lines of a function.
const FUNCTION_LINES: usize = 70;
/// Functions that are longer, each with its reason.
const LONG_FUNCTIONS: [(&str, &str); 0] = [];
/// The files of the test kit in which time may pass: the one place where tests wait for another
/// process, and the service that stands for work that takes time.
const WAITS: [&str; 2] = ["crates/testkit/src/wait.rs", "crates/testkit/src/target.rs"];

/// Spelled in two halves, so that this file passes its own rules.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!("),
    concat!("#[", "ignore"),
    concat!("FIX", "ME"),
];
const SLEEPS: [&str; 2] = [concat!("thread::", "sleep("), concat!("time::", "sleep(")];
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

fn rust() -> Vec<TextFile> {
    files_ending(".rs")
}

/// Fails with all complaints at once.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn planted(path: &str, text: &str) -> Vec<TextFile> {
    vec![TextFile { path: path.to_owned(), text: text.to_owned() }]
}

/// Where one of the words stands.
fn occurrences(files: &[TextFile], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                found.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    found
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    none(&occurrences(&rust(), &UNFINISHED));
    for word in UNFINISHED {
        assert_eq!(occurrences(&planted("a.rs", &format!("x\n  {word}")), &UNFINISHED).len(), 1);
    }
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    none(&occurrences(&files(), &MACHINE_PATHS));
    for path in MACHINE_PATHS {
        assert_eq!(
            occurrences(&planted("a.md", &format!("see {path}me")), &MACHINE_PATHS).len(),
            1
        );
    }
}

#[test]
fn tests_wait_for_events_and_not_for_time() {
    none(&sleeps(&rust()));
    for sleep in SLEEPS {
        let below = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{sleep}x)\n}}\n");
        for (path, text, found) in [
            ("crates/a/tests/b.rs", sleep, 1),
            ("crates/a/src/b/tests.rs", sleep, 1),
            ("crates/a/src/b.rs", &below, 1),
            ("crates/testkit/src/b.rs", sleep, 1),
            (WAITS[0], sleep, 0),
            ("crates/a/src/b.rs", sleep, 0),
        ] {
            assert_eq!(sleeps(&planted(path, text)).len(), found, "{path}");
        }
    }
}

fn sleeps(files: &[TextFile]) -> Vec<String> {
    let part =
        |file: &TextFile| TextFile { path: file.path.clone(), text: test_code(file).to_owned() };
    let parts: Vec<TextFile> = files.iter().map(part).collect();
    occurrences(&parts, &SLEEPS)
}

/// The part of a file that is there for tests.
fn test_code(file: &TextFile) -> &str {
    let is_test = file.path.contains("/tests/")
        || file.path.ends_with("/tests.rs")
        || file.path.starts_with("crates/testkit/src/");
    if WAITS.contains(&file.path.as_str()) {
        ""
    } else if is_test {
        &file.text
    } else {
        file.text.find("#[cfg(test)]").map_or("", |start| &file.text[start..])
    }
}

#[test]
fn files_are_short_enough_to_be_read() {
    none(&long_files(&rust()));
    assert_eq!(long_files(&planted("a.rs", &"x\n".repeat(FILE_LINES + 1))).len(), 1);
}

fn long_files(files: &[TextFile]) -> Vec<String> {
    let lines = |file: &TextFile| file.text.lines().count();
    let long = files.iter().filter(|file| lines(file) > FILE_LINES);
    long.map(|file| format!("{} has {} lines", file.path, lines(file))).collect()
}

#[test]
fn functions_are_short_enough_to_be_read() {
    none(&long_functions(&rust()));
    let long = format!("fn f() {{\n{}}}\n", "    x;\n".repeat(FUNCTION_LINES));
    assert_eq!(long_functions(&planted("a.rs", &long)).len(), 1);
    let short = "fn f() {\n    x;\n}\n".repeat(FUNCTION_LINES);
    assert!(long_functions(&planted("a.rs", &short)).is_empty());
}

/// Relies on rustfmt: a function ends at the first brace that stands as deep as its `fn`.
fn long_functions(files: &[TextFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let lines: Vec<&str> = file.text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = format!("{indent}}}");
            let body = lines[start..].iter().position(|line| *line == end);
            let without_body = lines[start].ends_with([';', '}']);
            let length = if without_body { 1 } else { body.map_or(1, |end| end + 1) };
            let is_excused = LONG_FUNCTIONS.contains(&(file.path.as_str(), name));
            if length > FUNCTION_LINES && !is_excused {
                found.push(format!("{}:{}: {name} has {length} lines", file.path, start + 1));
            }
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let words = line.trim_start();
    let at = words.find("fn ").filter(|at| {
        let before = &words[..*at];
        before.split_whitespace().all(|word| {
            word.starts_with("pub")
                || matches!(word, "const" | "async" | "in" | "crate)" | "super)")
        })
    })?;
    words[at + 3..].split(['(', '<']).next()
}

#[test]
fn modules_are_files_beside_their_directories() {
    none(&module_files(&rust()));
    assert_eq!(module_files(&planted("crates/a/src/b/mod.rs", "")).len(), 1);
}

fn module_files(files: &[TextFile]) -> Vec<String> {
    files.iter().filter(|file| file.path.ends_with("/mod.rs")).map(|f| f.path.clone()).collect()
}

#[test]
fn every_file_says_what_it_is_for() {
    none(&silent(&rust()));
    assert_eq!(silent(&planted("crates/a/src/lib.rs", "use x;")).len(), 1);
}

/// A file of inline tests is explained by the file it tests.
fn silent(files: &[TextFile]) -> Vec<String> {
    let explains =
        |file: &&TextFile| file.text.starts_with("//!") || file.path.ends_with("/tests.rs");
    files.iter().filter(|file| !explains(file)).map(|file| file.path.clone()).collect()
}

#[test]
fn every_crate_keeps_the_lints_and_unsafe_code_is_forbidden() {
    assert!(read("Cargo.toml").contains("\nunsafe_code = \"forbid\"\n"));
    // The fuzz targets are a workspace of their own, in which a macro needs what is forbidden here.
    let mut manifests = files_ending("/Cargo.toml");
    manifests.retain(|file| !file.path.starts_with("fuzz/"));
    assert!(manifests.len() >= 8, "only {} crates", manifests.len());
    none(&without_lints(&manifests));
    assert_eq!(without_lints(&planted("crates/a/Cargo.toml", "[lints]\n")).len(), 1);
    let word = concat!("uns", "afe ");
    none(&occurrences(&rust(), &[word]));
}

fn without_lints(manifests: &[TextFile]) -> Vec<String> {
    let keeps = |file: &&TextFile| file.text.contains("[lints]\nworkspace = true\n");
    manifests.iter().filter(|file| !keeps(file)).map(|file| file.path.clone()).collect()
}

#[test]
fn no_snapshot_waits_for_its_review() {
    let is_new = |file: &TextFile| file.path.ends_with(".snap.new");
    none(&files().iter().filter(|file| is_new(file)).map(|f| f.path.clone()).collect::<Vec<_>>());
    assert!(is_new(&planted("a/b.snap.new", "")[0]) && !is_new(&planted("a/b.snap", "")[0]));
}

#[test]
fn the_house_is_complete() {
    for path in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "docs/operations.md"]
    {
        assert!(root().join(path).is_file(), "{path} is missing");
    }
    assert!(read(".ci/run").contains("make test"));
    let readme = read("README.md");
    assert!(readme.contains("make dev") && readme.contains("make test"));
    assert!(read("CHANGELOG.md").contains("## [Unreleased]"));
}
