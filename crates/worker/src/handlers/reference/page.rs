//! The descriptions as Markdown: docs/handlers.md.

use std::fmt::{self, Write as _};

use super::{COMMON_ERRORS, ErrorCode, Example, Outcome, REFERENCES, Reference};

const TOP: &str = "\
<!-- Generated from crates/worker/src/handlers; a test compares them. To write it anew:
     cargo run -p duly-worker --example handlers > docs/handlers.md -->
# Built-in task types

These types run on every server without a line of code. `duly handler list` prints this table and
`duly handler show TYPE` one section of this page. For types of your own, write a worker:
[examples](../examples/README.md), [worker protocol](worker-protocol.md).

";

const COMMON: &str = "
Submit a task with `duly task run TYPE -d PAYLOAD --wait`, or over REST with
`{\"type\": TYPE, \"payload\": PAYLOAD}` to `POST /tasks`. A payload is JSON of at most 1 MiB. Every
type except `echo` rejects unknown fields. The examples below run as they stand on a fresh
`duly dev` with the flag that the table names, if it begins with `--`; the others are keys of the
[file of `duly serve`](operations.md#many-nodes). A test runs each of them.

## Errors of every type

An error that is *retried* ends the task only when its retries are used up (`retries`, default: 3).
[errors.md](errors.md#task-errors) says what to do about each code.

";

/// The whole page.
pub fn page() -> String {
    let mut page = String::new();
    write_page(&mut page).expect("a String takes everything");
    page
}

fn write_page(page: &mut String) -> fmt::Result {
    page.push_str(TOP);
    page.push_str("| type | needs | does |\n|---|---|---|\n");
    for reference in REFERENCES {
        let Reference { r#type, summary, .. } = reference;
        let flag = reference.flag.map(|flag| format!("`{flag}`")).unwrap_or_default();
        writeln!(page, "| [`{type}`](#{type}) | {flag} | {summary} |")?;
    }
    page.push_str(COMMON);
    write_errors(page, COMMON_ERRORS)?;
    for reference in REFERENCES {
        write_section(page, reference)?;
    }
    Ok(())
}

fn write_section(page: &mut String, reference: &Reference) -> fmt::Result {
    let Reference { r#type, summary, .. } = reference;
    write!(page, "\n## {type}\n\n{summary}")?;
    if let Some(flag) = reference.flag {
        write!(page, " Needs `{flag}`.")?;
    }
    page.push('\n');
    for note in reference.notes {
        writeln!(page, "\n{note}")?;
    }
    page.push_str("\n**Payload**\n\n");
    if reference.payload.is_empty() {
        page.push_str("Any JSON.\n");
    } else {
        page.push_str("| field | type | default | meaning |\n|---|---|---|---|\n");
    }
    for field in reference.payload {
        let default = field.default.unwrap_or("*required*");
        writeln!(page, "| `{}` | {} | {default} | {} |", field.name, field.r#type, field.meaning)?;
    }
    page.push_str("\n**Result**\n\n");
    if reference.result.is_empty() {
        page.push_str("The payload.\n");
    } else {
        page.push_str("| field | type | meaning |\n|---|---|---|\n");
    }
    for field in reference.result {
        writeln!(page, "| `{}` | {} | {} |", field.name, field.r#type, field.meaning)?;
    }
    if !reference.errors.is_empty() {
        page.push_str("\n**Errors**\n\n");
        write_errors(page, reference.errors)?;
    }
    page.push_str("\n**Examples**\n");
    reference.examples.iter().try_for_each(|example| write_example(page, r#type, example))
}

fn write_errors(page: &mut String, errors: &[ErrorCode]) -> fmt::Result {
    page.push_str("| code | retried | meaning |\n|---|---|---|\n");
    for error in errors {
        let retried = error.retried.word();
        writeln!(page, "| `{}` | {retried} | {} |", error.code, error.meaning)?;
    }
    Ok(())
}

fn write_example(page: &mut String, task_type: &str, example: &Example) -> fmt::Result {
    let Example { title, payload, outcome } = example;
    writeln!(page, "\n{title}:\n\n```sh\nduly task run {task_type} -d '{payload}' --wait\n```\n")?;
    match outcome {
        Outcome::Result(result) => writeln!(page, "```json\n{result}\n```"),
        Outcome::Error(code) => writeln!(page, "It fails with `{code}`."),
    }
}
