//! What a block must print, as a pattern.

use std::collections::HashMap;

/// What the names in patterns have stood for so far.
pub(super) type Names = HashMap<String, String>;

const ANYTHING: &str = "…";

/// Whether the output is what was expected, line by line. Names keep their meaning only if it is.
pub(super) fn matches(expected: &str, output: &str, names: &mut Names) -> bool {
    let expected: Vec<&str> = expected.lines().map(str::trim_end).collect();
    let output: Vec<&str> = output.lines().map(str::trim_end).collect();
    match lines(&expected, &output, names) {
        Some(learnt) => {
            *names = learnt;
            true
        }
        None => false,
    }
}

fn lines(expected: &[&str], output: &[&str], names: &Names) -> Option<Names> {
    match (expected, output) {
        ([], []) => Some(names.clone()),
        ([ANYTHING, rest @ ..], _) => {
            (0..=output.len()).find_map(|skipped| lines(rest, &output[skipped..], names))
        }
        ([first, rest @ ..], [line, others @ ..]) => {
            let learnt = one_line(first, line, names)?;
            lines(rest, others, &learnt)
        }
        _ => None,
    }
}

/// Names a line gives to words, if it fits.
fn one_line(pattern: &str, line: &str, names: &Names) -> Option<Names> {
    if let Some(rest) = pattern.strip_prefix(ANYTHING) {
        let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        return ends.into_iter().find_map(|at| one_line(rest, &line[at..], names));
    }
    if let Some((name, rest)) = name(pattern) {
        let length = line.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(line.len());
        let (word, after) = line.split_at(length);
        let mut learnt = names.clone();
        let known = learnt.entry(name.to_owned()).or_insert_with(|| word.to_owned());
        return if known == word && !word.is_empty() {
            one_line(rest, after, &learnt)
        } else {
            None
        };
    }
    let mut characters = pattern.chars();
    match characters.next() {
        None => line.is_empty().then(|| names.clone()),
        Some(first) => one_line(characters.as_str(), line.strip_prefix(first)?, names),
    }
}

/// `<id>` at the start of a pattern, and what follows.
fn name(pattern: &str) -> Option<(&str, &str)> {
    let (name, rest) = pattern.strip_prefix('<')?.split_once('>')?;
    name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some((name, rest))
}

#[test]
fn patterns_can_fail() {
    let fits = |expected: &str, output: &str| matches(expected, output, &mut Names::new());
    assert!(fits("a\nb", "a\nb\n"));
    assert!(fits("a…c", "a b c") && fits("a…c", "ac"));
    assert!(fits("…\nlast", "x\ny\nlast") && fits("a\n…", "a"));
    assert!(fits("<id> is <id>", "0-1 is 0-1"));
    for (expected, output) in [
        ("a", "b"),
        ("a", "a\nb"),
        ("a\nb", "a"),
        ("a", ""),
        ("", "a"),
        ("a…c", "a b"),
        ("<id> is <id>", "0-1 is 0-2"),
        ("<id>", ""),
        ("…\nlast", "last\nmore"),
    ] {
        assert!(!fits(expected, output), "{expected:?} must not fit {output:?}");
    }
}

#[test]
fn names_last_from_one_block_to_the_next() {
    let mut names = Names::new();
    assert!(matches("<id>", "x-1", &mut names));
    assert!(!matches("<id>", "x-2", &mut names));
    assert!(matches("again <id>", "again x-1", &mut names));
}
