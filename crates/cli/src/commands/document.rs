//! Files in YAML or JSON that people write: read as JSON text, with errors by line and column.

use std::path::Path;

use anyhow::Context as _;
use duly_client::wire::ProblemField;
use serde_json::value::RawValue;

use crate::exit::Usage;
use crate::output;

/// A file that could be read.
pub(super) struct Document {
    path: String,
    text: String,
    /// What a server gets: JSON text.
    pub(super) body: String,
}

/// One item of a file that holds one or several.
pub(super) struct Item {
    /// What a server gets: JSON text.
    pub(super) body: String,
    /// Where it stands in the file: the lines before it, and its own text.
    lines_before: usize,
    text: String,
}

impl Document {
    /// Reads a file; says what is wrong with it and returns nothing if it is neither YAML nor JSON.
    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))
            .map_err(|error| Usage::new(format!("{error:#}")))?;
        let path = path.display().to_string();
        match body_of(&text) {
            Ok(body) => Ok(Some(Self { path, text, body })),
            Err((place, detail)) => {
                output::error(&format!("{path}:{place}: {detail}"));
                Ok(None)
            }
        }
    }

    /// Says what is wrong with the file, field by field.
    pub(super) fn report(&self, errors: &[ProblemField]) {
        self.print(errors, 0, &self.text);
    }

    /// Says what is wrong with one item of the file.
    pub(super) fn report_item(&self, item: &Item, errors: &[ProblemField]) {
        self.print(errors, item.lines_before, &item.text);
    }

    fn print(&self, errors: &[ProblemField], before: usize, text: &str) {
        for ProblemField { pointer, detail, .. } in errors {
            let (line, column) = locate(text, pointer);
            let place = format!("{}:{}:{column}", self.path, before + line);
            output::error(&format!("{place}: {pointer}: {detail}"));
        }
    }

    /// The items of a list, or the only one.
    pub(super) fn items(&self) -> Vec<Item> {
        let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(&self.body) else {
            let (body, text) = (self.body.clone(), self.text.clone());
            return vec![Item { body, lines_before: 0, text }];
        };
        let mut texts = split(&self.text, &list).into_iter();
        let items = list.into_iter().map(|item| {
            let (lines_before, text) = texts.next().unwrap_or_else(|| (0, self.text.clone()));
            Item { body: item.get().to_owned(), lines_before, text }
        });
        items.collect()
    }
}

/// The text of each item of a list, with the number of lines before it; nothing if the list is written in
/// an unusual way.
fn split(text: &str, items: &[Box<RawValue>]) -> Vec<(usize, String)> {
    if text.trim_start().starts_with('[') {
        return split_json(text, items);
    }
    let dash = |line: &&str| line.trim_start().starts_with("- ") || line.trim() == "-";
    let Some(depth) = text.lines().find(dash).map(indent) else { return Vec::new() };
    let mut found: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if dash(&line) && indent(line) == depth {
            found.push((number, format!("{} {}\n", &line[..depth], &line[depth + 1..])));
        } else if let Some((_, item)) = found.last_mut() {
            item.push_str(line);
            item.push('\n');
        }
    }
    if found.len() == items.len() { found } else { Vec::new() }
}

fn split_json(text: &str, items: &[Box<RawValue>]) -> Vec<(usize, String)> {
    let mut found = Vec::with_capacity(items.len());
    let mut from = 0;
    for item in items {
        let Some(at) = text[from..].find(item.get()).map(|at| from + at) else {
            return Vec::new();
        };
        let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        // In the place of what precedes it on its line, so that columns stay, and of its brace: its keys then
        // begin at one column wherever they stand.
        let blanks = " ".repeat(text[begin..at].chars().count() + 1);
        found.push((text[..at].matches('\n').count(), blanks + item.get().get(1..).unwrap_or("")));
        from = at + item.get().len();
    }
    found
}

/// The JSON text of a file; JSON stays as it is. An error says where it is.
fn body_of(text: &str) -> Result<String, (String, String)> {
    let json: Result<&RawValue, _> = serde_json::from_str(text);
    match json {
        Ok(raw) if raw.get().starts_with(['{', '[']) => return Ok(raw.get().to_owned()),
        Err(bad) if text.trim_start().starts_with('{') => {
            let place = format!("{}:{}", bad.line(), bad.column());
            return Err((place, plain(&bad.to_string())));
        }
        _ => {}
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

    fn items(text: &str) -> Vec<Item> {
        let (path, text) = (String::new(), text.to_owned());
        let body = body_of(&text).unwrap();
        Document { path, text, body }.items()
    }

    #[test]
    fn items_of_a_list_know_where_they_stand() {
        let yaml = "# two\n- name: a\n  cron: x\n\n- task:\n    type: echo\n  name: b\n";
        let json = "[\n  {\"name\": \"a\",\n   \"cron\": \"x\"},\n  {\n    \"name\": \"b\",\n    \
                    \"task\": {\"type\": \"echo\"}\n  }\n]\n";
        for (text, places) in [
            (yaml, [(0, "/name", (2, 3)), (0, "/cron", (3, 3)), (1, "/task/type", (6, 5))]),
            (json, [(0, "/name", (2, 4)), (0, "/cron", (3, 4)), (1, "/task/type", (6, 14))]),
        ] {
            let items = items(text);
            assert_eq!(items.len(), 2, "{text}");
            assert!(items[0].body.starts_with('{') && items[1].body.contains("echo"));
            for (index, pointer, (line, column)) in places {
                let item = &items[index];
                let place = locate(&item.text, pointer);
                assert_eq!((item.lines_before + place.0, place.1), (line, column), "{pointer}");
            }
        }
        assert_eq!(items("name: a\n").len(), 1);
        assert_eq!(items("[{name: a}, {name: b}]").len(), 2);
    }
}
