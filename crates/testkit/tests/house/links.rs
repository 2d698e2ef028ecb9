//! Links within the documents lead somewhere.

use std::path::Path;

use crate::tree::{TextFile, files_ending, read, root};

/// What the links and pictures of a text point at.
fn targets(text: &str) -> Vec<&str> {
    let after = |mark: &'static str, end: char| {
        let found = text.match_indices(mark);
        found.filter_map(move |(at, mark)| text[at + mark.len()..].split(end).next())
    };
    after("](", ')').chain(after("src=\"", '"')).chain(after("srcset=\"", '"')).collect()
}

fn is_external(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The anchors that a reader's page makes of the headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn broken(file: &TextFile) -> Vec<String> {
    let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let complaint = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let place = if path.is_empty() { file.path.clone().into() } else { directory.join(path) };
        if !root().join(&place).exists() {
            return Some(format!("{}: {target} does not exist", file.path));
        }
        if anchor.is_empty() {
            return None;
        }
        let text = if path.is_empty() { file.text.clone() } else { read(&place.to_string_lossy()) };
        let is_there = anchors(&text).iter().any(|known| known == anchor);
        (!is_there).then(|| format!("{}: {target} has no such heading", file.path))
    };
    targets(&file.text)
        .into_iter()
        .filter(|target| !is_external(target))
        .filter_map(complaint)
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let documents = files_ending(".md");
    let links: usize = documents.iter().map(|file| targets(&file.text).len()).sum();
    assert!(links > 10, "only {links} links found");
    let broken: Vec<_> = documents.iter().flat_map(broken).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let text = "[a](README.md) [b](no/such.md) [c](#no-such) [d](https://example.com/x)";
    let file = TextFile { path: "x.md".to_owned(), text: text.to_owned() };
    assert_eq!(broken(&file).len(), 2, "{:?}", broken(&file));
}
