//! Workflow files: YAML or JSON, checked as the server checks them, with errors by line and column.

use std::path::Path;

use anyhow::Context as _;
use duly_core::workflow::request::WorkflowSpec;

use crate::exit::Usage;
use crate::output;

/// A workflow file that holds.
pub(super) struct WorkflowFile {
    /// What a server gets: JSON text.
    pub(super) body: String,
    pub(super) spec: WorkflowSpec,
}

/// Reads a file; says what is wrong with it and returns nothing if it does not hold.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<WorkflowFile>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}", path.display()))
        .map_err(|error| Usage::new(format!("{error:#}")))?;
    let body = match body_of(&text) {
        Ok(body) => body,
        Err((place, detail)) => {
            output::error(&format!("{}:{place}: {detail}", path.display()));
            return Ok(None);
        }
    };
    match duly_api::check_workflow(body.as_bytes()) {
        Ok(spec) => Ok(Some(WorkflowFile { body, spec })),
        Err(problem) => {
            for error in &problem.errors {
                let (line, column) = locate(&text, &error.pointer);
                let (path, pointer, detail) = (path.display(), &error.pointer, &error.detail);
                output::error(&format!("{path}:{line}:{column}: {pointer}: {detail}"));
            }
            if problem.errors.is_empty() {
                output::error(&format!("{}: {}", path.display(), problem.detail));
            }
            Ok(None)
        }
    }
}

/// The JSON text of a file; JSON stays as it is. An error says where it is.
fn body_of(text: &str) -> Result<String, (String, String)> {
    if text.trim_start().starts_with('{') {
        let read: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text);
        return match read {
            Ok(raw) => Ok(raw.get().to_owned()),
            Err(bad) => Err((format!("{}:{}", bad.line(), bad.column()), plain(&bad.to_string()))),
        };
    }
    let read: Result<serde_yaml_ng::Value, _> = serde_yaml_ng::from_str(text);
    let value = read.map_err(|bad| {
        let place = bad.location().map_or((1, 1), |at| (at.line(), at.column()));
        (format!("{}:{}", place.0, place.1), plain(&bad.to_string()))
    })?;
    serde_json::to_string(&value).map_err(|bad| ("1:1".to_owned(), bad.to_string()))
}

/// A message without the place at its end, which is said before it.
fn plain(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

/// Line and column of what a JSON pointer names, both from 1; of the nearest that can be found if the
/// file is written in an unusual way.
fn locate(text: &str, pointer: &str) -> (usize, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut line, mut column) = (0, 0);
    let mut begin = 0;
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let outer = if begin == 0 { None } else { Some(indent(lines[line])) };
        let found = key_in_block(&lines, begin, outer, &key)
            .or_else(|| key_in_line(&lines, line, column, &key));
        if let Some((at, offset)) = found {
            (line, column) = (at, offset);
            begin = line + 1;
        }
    }
    (line + 1, column + 1)
}

/// A key among the lines of a block that begins here and is indented more than what it belongs to.
fn key_in_block(
    lines: &[&str],
    begin: usize,
    outer: Option<usize>,
    key: &str,
) -> Option<(usize, usize)> {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut inner = None;
    for (at, line) in lines.iter().enumerate().skip(begin).filter(|(_, line)| is_text(line)) {
        let own = indent(line);
        if outer.is_some_and(|outer| own <= outer) {
            return None;
        }
        // The first line of JSON is a brace alone.
        if line.trim() == "{" && inner.is_none() {
            continue;
        }
        let inner = *inner.get_or_insert(own);
        let rest = line.trim_start();
        if own == inner && starts_with_key(rest, key) {
            return Some((at, own));
        }
    }
    None
}

/// A key on the same line, after what it belongs to.
fn key_in_line(lines: &[&str], at: usize, from: usize, key: &str) -> Option<(usize, usize)> {
    let line = lines.get(at)?;
    let rest = line.get(from..)?;
    let places = rest.match_indices(key).map(|(place, _)| place);
    let mut keys = places.filter(|place| {
        let after = rest[place + key.len()..].trim_start_matches(['"', '\'']).trim_start();
        after.starts_with(':')
    });
    let place = keys.next()?;
    // A quoted key begins with its quote.
    let is_quoted = rest[..place].ends_with(['"', '\'']);
    Some((at, from + place - usize::from(is_quoted)))
}

fn starts_with_key(text: &str, key: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let Some(rest) = text.strip_prefix(key) else { return false };
    rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "name: x\n\ntasks:\n  # first\n  load:\n    type: echo\n    payload:\n      \
                        fetch: 1\n  fetch: {type: echo, dependsOn: [load, none]}\n";

    #[test]
    fn pointers_lead_to_lines_and_columns() {
        for (pointer, place) in [
            ("", (1, 1)),
            ("/tasks", (3, 1)),
            ("/tasks/load/type", (6, 5)),
            ("/tasks/fetch", (9, 3)),
            ("/tasks/fetch/dependsOn/1", (9, 23)),
            ("/tasks/load/payload/fetch", (8, 7)),
            ("/tasks/load/absent", (5, 3)),
        ] {
            assert_eq!(locate(YAML, pointer), place, "{pointer}");
        }
        let json = "{\n  \"tasks\": {\n    \"a\": {\"type\": \"x\"}\n  }\n}";
        assert_eq!(locate(json, "/tasks/a/type"), (3, 11));
    }

    #[test]
    fn broken_files_say_where() {
        let (place, _) = body_of("tasks:\n  a: [1\n").unwrap_err();
        assert!(place.starts_with(['2', '3']), "{place}");
        assert_eq!(body_of("{\n  \"a\": }").unwrap_err().0, "2:8");
        assert_eq!(body_of("a: 1\nb: [x]\n").unwrap(), r#"{"a":1,"b":["x"]}"#);
    }
}
