//! `duly handler …`: the reference of the built-in task types. It calls no server.

use anyhow::Context as _;
use duly_worker::handlers::reference::{
    COMMON_ERRORS, ErrorCode, Example, Outcome, PayloadField, REFERENCES, Reference, ResultField,
};
use serde::Serialize;

use crate::args::{HandlerCommand, HandlerListArgs, HandlerShowArgs, Output};
use crate::exit::Ending;
use crate::output;

/// Columns of a paragraph.
const COLUMNS: usize = 80;

#[derive(Serialize)]
struct List {
    items: &'static [Reference],
}

pub(crate) fn run(command: HandlerCommand) -> anyhow::Result<Ending> {
    match command {
        HandlerCommand::List(args) => list(&args),
        HandlerCommand::Show(args) => show(&args),
    }
}

fn list(args: &HandlerListArgs) -> anyhow::Result<Ending> {
    match args.output {
        Output::Json => output::json(&List { items: REFERENCES })?,
        Output::Id => {
            for reference in REFERENCES {
                output::data(reference.r#type)?;
            }
        }
        Output::Table => {
            let mut table = output::table(&["type", "needs", "does"]).wrap_last();
            for reference in REFERENCES {
                table.add_row([reference.r#type, flag(reference), reference.summary]);
            }
            output::data(&output::render(&table))?;
            output::say("next: duly handler show http");
        }
    }
    Ok(Ending::Ok)
}

fn show(args: &HandlerShowArgs) -> anyhow::Result<Ending> {
    let reference = REFERENCES.iter().find(|reference| reference.r#type == args.task_type);
    let reference = reference.context("the arguments name a known type")?;
    match args.output {
        Output::Json => output::json(reference)?,
        Output::Id => output::data(reference.r#type)?,
        Output::Table => {
            output::data(&text_of(reference))?;
            output::say(&format!("next: {}", command(reference, &reference.examples[0])));
        }
    }
    Ok(Ending::Ok)
}

fn flag(reference: &Reference) -> &'static str {
    reference.flag.unwrap_or("-")
}

/// The reference of a type as text.
fn text_of(reference: &Reference) -> String {
    let mut parts = vec![wrapped(&format!("{}: {}", reference.r#type, reference.summary), "")];
    if let Some(flag) = reference.flag {
        parts.push(format!("Needs: {flag}"));
    }
    parts.extend(reference.notes.iter().map(|note| wrapped(note, "")));
    parts.push(payload(reference));
    parts.push(result(reference));
    parts.push(errors(reference));
    for example in reference.examples {
        let outcome = match example.outcome {
            Outcome::Result(result) => fill(json_words(result), "  ", "      "),
            Outcome::Error(code) => format!("  fails with {code}"),
        };
        let title = wrapped(&format!("EXAMPLE: {}", example.title), "");
        let command = fill(json_words(&command(reference, example)), "  ", "      ");
        parts.push(format!("{title}\n{command}\n{outcome}"));
    }
    parts.join("\n\n")
}

fn payload(reference: &Reference) -> String {
    if reference.payload.is_empty() {
        return "PAYLOAD: any JSON".to_owned();
    }
    let mut text = "PAYLOAD".to_owned();
    for PayloadField { name, r#type, default, meaning } in reference.payload {
        let default = default.map_or("required".to_owned(), |it| format!("default: {it}"));
        text += &entry(&format!("{name}: {type}; {default}"), meaning);
    }
    text
}

fn result(reference: &Reference) -> String {
    if reference.result.is_empty() {
        return "RESULT: the payload".to_owned();
    }
    let mut text = "RESULT".to_owned();
    for ResultField { name, r#type, meaning } in reference.result {
        text += &entry(&format!("{name}: {type}"), meaning);
    }
    text
}

fn errors(reference: &Reference) -> String {
    let mut text = "ERRORS".to_owned();
    for ErrorCode { code, retried, meaning } in reference.errors.iter().chain(COMMON_ERRORS) {
        text += &entry(&format!("{code}: retried: {}", retried.word()), meaning);
    }
    text
}

/// A line for the head, and the meaning below it.
fn entry(head: &str, meaning: &str) -> String {
    format!("\n{}\n{}", wrapped(head, "  "), wrapped(meaning, "      "))
}

/// How to run an example.
fn command(reference: &Reference, example: &Example) -> String {
    format!("duly task run {} -d '{}' --wait", reference.r#type, example.payload)
}

/// The text without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "").replace("**", "")
}

/// The text without marks, in lines of at most [`COLUMNS`] that begin with the indent.
fn wrapped(text: &str, indent: &str) -> String {
    let text = plain(text);
    fill(text.split(' '), indent, indent)
}

/// Parts between which a line may be wrapped, so that the JSON stays valid and a command can be
/// copied to a shell: each ends with a comma outside of a string.
fn json_words(text: &str) -> Vec<&str> {
    let (mut words, mut start) = (Vec::new(), 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b' ' if !in_string && text[..at].ends_with(',') => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[start..]);
    words
}

/// The words in lines of at most [`COLUMNS`], unless a word is longer.
fn fill<'a>(words: impl IntoIterator<Item = &'a str>, first: &str, indent: &str) -> String {
    let mut words = words.into_iter();
    let mut lines = vec![format!("{first}{}", words.next().unwrap_or_default())];
    for word in words {
        let line = lines.last_mut().expect("there is a first line");
        if line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_fit_a_narrow_terminal_and_lose_no_word() {
        for note in REFERENCES.iter().flat_map(|reference| reference.notes) {
            let text = wrapped(note, "  ");
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            assert!(text.lines().all(|line| line.starts_with("  ")), "{text}");
            assert_eq!(text.replace("\n  ", " ").trim_start(), plain(note));
        }
    }
    #[test]
    fn examples_fit_a_narrow_terminal_and_can_be_copied_to_a_shell() {
        for reference in REFERENCES {
            let text = text_of(reference);
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            for example in reference.examples {
                let whole = command(reference, example);
                let shown = fill(json_words(&whole), "", "      ");
                let (before, payload) = shown.split_once('\'').expect("a payload");
                let (payload, after) = payload.rsplit_once('\'').expect("an end of the payload");
                assert!(!before.contains('\n') && !after.contains('\n'), "{shown}");
                let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
                assert!(json(payload).is_some(), "{shown}");
                assert_eq!(json(payload), json(example.payload), "{shown}");
            }
        }
    }

    #[test]
    fn lines_are_not_broken_inside_of_strings() {
        let text = r#"run -d '{"a": "b\", c", "d": [1, 2]}' --wait"#;
        let words = [r#"run -d '{"a": "b\", c","#, r#""d": [1,"#, "2]}' --wait"];
        assert_eq!(json_words(text), words);
    }
}
