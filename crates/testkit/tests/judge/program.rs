//! The program: its exit codes, what it prints and what it writes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use duly_testkit::history::file;
use serde_json::Value;
use tempfile::TempDir;

use crate::script::parse;

const VALID: &str = "0 submit a ok
    2 submit b info
    10 w1 start a 1
    15 kill w1
    1500-1510 w2 runs a 2 success
    shown a SUCCESS 2 lost=1";
const FILES: [&str; 5] = [file::CLIENT, file::EFFECTS, file::NEMESIS, file::SHOWN, file::WORKFLOWS];

fn folder(script: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    parse(script).write(folder.path());
    folder
}

/// The exit code and what was printed.
fn judge(folder: &Path, options: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_judge"));
    let output = command.arg(folder).args(options).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn verdict(folder: &Path) -> Value {
    let text = std::fs::read(folder.join(file::VERDICT)).expect("a verdict");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_valid_run_ends_with_zero() {
    let folder = folder(VALID);
    let minima = ["--min-acked", "1", "--min-kills", "1", "--min-losses", "1"];
    let more = ["--min-unknown", "1", "--min-in-flight-percent", "100", "--min-pauses", "0"];
    let (code, text) = judge(folder.path(), &[minima, more].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\nVALID\n"), "{text}");
    let verdict = verdict(folder.path());
    assert_eq!((&verdict["verdict"], &verdict["seed"]), (&"valid".into(), &7.into()));
    assert_eq!(verdict["version"], "0.1.0");
    assert_eq!(verdict["minima"][1]["met"], true);
    assert_eq!(verdict["figures"]["fault_marks"][0]["fault"], "kill");
}

#[test]
fn a_violated_run_ends_with_one_and_tells_the_story() {
    let folder = folder(&VALID.replace("lost=1", "lost=1 losses=3"));
    let (code, text) = judge(folder.path(), &["--min-kills", "9"]);
    assert_eq!(code, Some(1), "{text}");
    let (_, story) = text.split_once("first violation\n").expect("a story");
    let tells: Vec<_> = story.lines().filter_map(|line| line.split_once(" ms  ")).collect();
    let files: Vec<_> =
        tells.iter().map(|(_, line)| line.split_whitespace().next().unwrap_or("")).collect();
    let expected =
        ["client", "client", "effects", "nemesis", "nemesis", "effects", "effects", "effects"];
    assert_eq!(files[..8], expected, "{story}");
    assert_eq!(files[8..], ["shown"], "{story}");
    assert_eq!(tells[2].0.trim(), "10.000");
    let first = &verdict(folder.path())["first"][0];
    assert_eq!(first["class"], "losses-miscounted");
    assert_eq!(first["lines"].as_array().map(Vec::len), Some(9));
}

#[test]
fn only_the_first_ten_violations_are_told() {
    let script: Vec<_> = (0..15).map(|number| format!("{number} submit t{number} ok")).collect();
    let folder = folder(&script.join("\n"));
    assert_eq!(judge(folder.path(), &[]).0, Some(1));
    let verdict = verdict(folder.path());
    assert_eq!(verdict["violations"]["lost"], 15);
    let first = verdict["first"].as_array().expect("a list");
    let keys: Vec<_> = first.iter().map(|it| it["keys"][0].as_str().unwrap()).collect();
    let expected: Vec<_> = (0..10).map(|number| format!("t{number}")).collect();
    assert_eq!(keys, expected);
}

#[test]
fn a_missed_minimum_ends_with_two() {
    let folder = folder(VALID);
    let (code, text) = judge(folder.path(), &["--min-pauses", "1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("at least 1 pauses: 0, MISSED"), "{text}");
    assert_eq!(verdict(folder.path())["verdict"], "unknown");
}

#[test]
fn a_missing_file_ends_with_two() {
    for name in FILES.into_iter().chain([file::RUN]) {
        let folder = folder(VALID);
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let (code, text) = judge(folder.path(), &[]);
        assert_eq!(code, Some(2), "{name}: {text}");
        assert!(text.contains(name), "{text}");
        assert_eq!(verdict(folder.path())["verdict"], "unknown");
    }
}

#[test]
fn a_file_with_something_else_in_it_ends_with_two() {
    for name in FILES {
        let folder = folder(VALID);
        append(&folder.path().join(name), "{\"seq\":1,\"mono_ns\":2}\n");
        let (code, text) = judge(folder.path(), &[]);
        assert_eq!(code, Some(2), "{name}: {text}");
    }
}

#[test]
fn half_a_last_line_is_what_a_killed_writer_leaves() {
    for name in FILES {
        let folder = folder(VALID);
        append(&folder.path().join(name), "{\"seq\":9,\"mono_ns\":99,\"ta");
        let (code, text) = judge(folder.path(), &[]);
        assert_eq!(code, Some(0), "{name}: {text}");
        assert_eq!(verdict(folder.path())["half_lines"], 1);
    }
}

#[test]
fn a_wrong_call_ends_with_two() {
    let folder = folder(VALID);
    for options in [&["--min-dreams", "1"][..], &["--min-acked"], &["--min-acked", "x"], &["-q"]] {
        assert_eq!(judge(folder.path(), options).0, Some(2), "{options:?}");
    }
    assert_eq!(judge(&folder.path().join("nowhere"), &[]).0, Some(2));
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("the file is there");
    file.write_all(text.as_bytes()).expect("it can be written");
}
