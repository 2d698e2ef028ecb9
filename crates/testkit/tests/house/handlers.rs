//! The page about the built-in task types says what `duly handler` says.

use duly_worker::handlers::reference::{COMMON_ERRORS, REFERENCES, page};

use crate::markdown::{section, table_rows, unticked};
use crate::tree::read;

#[test]
fn the_page_is_up_to_date() {
    assert!(
        read("docs/handlers.md") == page(),
        "docs/handlers.md differs from the code: run \
         `cargo run -p duly-worker --example handlers > docs/handlers.md` and review it"
    );
}

#[test]
fn errors_are_retried_as_the_table_of_errors_says() {
    let text = read("docs/errors.md");
    let rows = table_rows(section(&text, "## Task errors"));
    for error in REFERENCES.iter().flat_map(|it| it.errors).chain(COMMON_ERRORS) {
        let row = rows.iter().find(|row| unticked(&row[0]) == error.code);
        let kind = row.unwrap_or_else(|| panic!("{} is not listed", error.code))[1].as_str();
        let expected = match error.retried.word() {
            "yes" => "retry",
            "no" => "failure",
            _ => "either",
        };
        assert_eq!(kind, expected, "{}", error.code);
    }
}
