//! The little of Markdown that the documents are checked by: headings, tables, fenced blocks.

/// The text below a heading, up to the next heading of the same or a higher level.
pub(crate) fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let level = heading.chars().take_while(|c| *c == '#').count();
    let start = text
        .match_indices(heading)
        .find(|(at, _)| is_line(text, *at, heading.len()))
        .map_or_else(|| panic!("no heading {heading:?}"), |(at, _)| at + heading.len());
    let body = &text[start..];
    let end = body.match_indices("\n#").find_map(|(at, _)| {
        let hashes = body[at + 1..].chars().take_while(|c| *c == '#').count();
        (hashes <= level && !is_fenced(body, at)).then_some(at)
    });
    &body[..end.unwrap_or(body.len())]
}

fn is_line(text: &str, at: usize, length: usize) -> bool {
    (at == 0 || text[..at].ends_with('\n'))
        && matches!(text[at + length..].chars().next(), None | Some('\n'))
}

fn is_fenced(text: &str, at: usize) -> bool {
    text[..at].lines().filter(|line| line.starts_with("```")).count() % 2 == 1
}

/// The rows of every table in the text: cells without their blanks, header and rule left out.
pub(crate) fn table_rows(text: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut rows = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let is_rule = |line: &&str| line.starts_with("|--") || line.starts_with("| --");
        let is_header = lines.get(number + 1).is_some_and(is_rule);
        if line.starts_with('|') && !is_rule(line) && !is_header {
            let inside = line.trim().trim_matches('|');
            rows.push(inside.split('|').map(|cell| cell.trim().to_owned()).collect());
        }
    }
    rows
}

/// A cell such as `` `CODE` `` without its ticks.
pub(crate) fn unticked(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// A fenced block, with what stands before it when that is a comment for the tests.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) body: String,
    /// `<!-- tour: server -->` on the line before the fence.
    pub(crate) mark: Option<String>,
    /// The line of the fence, for messages.
    pub(crate) line: usize,
}

/// The fenced blocks of a text, in order. `first_line` is the number of its first line.
pub(crate) fn blocks(text: &str, first_line: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.body += &format!("{line}\n"),
            (Some(language), None) => {
                let mark = before.strip_prefix("<!-- tour: ").and_then(|m| m.strip_suffix(" -->"));
                open = Some(Block {
                    language: language.to_owned(),
                    body: String::new(),
                    mark: mark.map(str::to_owned),
                    line: first_line + number,
                });
            }
            (None, None) => before = line,
        }
    }
    assert!(open.is_none(), "a fenced block is not closed");
    blocks
}

#[test]
fn sections_tables_and_blocks_are_found() {
    let text = "# A\n## B\nx\n| a | b |\n|---|---|\n| `C` | 2 |\n\n<!-- tour: go -->\n```sh\n# no heading\n```\n## D\ny\n";
    let section = section(text, "## B");
    assert!(section.contains('x') && !section.contains('y'));
    assert_eq!(table_rows(section), [["`C`", "2"]]);
    let blocks = blocks(section, 1);
    assert_eq!((blocks[0].language.as_str(), blocks[0].body.as_str()), ("sh", "# no heading\n"));
    assert_eq!(blocks[0].mark.as_deref(), Some("go"));
}
