//! The limits that operators read are those that the code keeps.

use std::collections::BTreeMap;

use crate::markdown::{section, table_rows, unticked};
use crate::tree::read;

/// Names and values of `limits.rs`; durations in seconds.
fn in_source(text: &str) -> BTreeMap<String, u64> {
    let mut known = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("pub const ") else { continue };
        let (name, rest) = rest.split_once(':').expect("a type");
        let (_, value) = rest.split_once('=').expect("a value on the same line");
        let value = value.trim().trim_end_matches(';');
        let value = value.trim_start_matches("Duration::from_secs(").trim_end_matches(')');
        let value = sum(value, &known);
        known.insert(name.to_owned(), value);
    }
    known
}

fn sum(text: &str, known: &BTreeMap<String, u64>) -> u64 {
    let factor = |word: &str| {
        let word = word.trim();
        known.get(word).copied().unwrap_or_else(|| {
            word.replace('_', "").parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
        })
    };
    text.split('+').map(|term| term.split('*').map(factor).product::<u64>()).sum()
}

/// `1,088 KiB`, `24 h`, `9`.
fn as_written(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.replace(',', "").parse().unwrap_or_else(|_| panic!("{text:?}"));
    number
        * match unit {
            "" | "s" => 1,
            "min" => 60,
            "h" => 60 * 60,
            "days" => 24 * 60 * 60,
            "KiB" => 1024,
            "MiB" => 1024 * 1024,
            _ => panic!("an unknown unit: {unit:?}"),
        }
}

#[test]
fn the_table_of_limits_is_true() {
    let text = read("docs/operations.md");
    let rows = table_rows(section(&text, "## Limits"));
    let row = |row: Vec<String>| (unticked(&row[0]).to_owned(), as_written(&row[1]));
    let documented: BTreeMap<String, u64> = rows.into_iter().map(row).collect();
    assert_eq!(documented, in_source(&read("crates/core/src/limits.rs")));
}

#[test]
fn values_are_read_as_they_are_written() {
    let source = "pub const A: usize = 1_024 * 2;\npub const B: usize = A + 1;\n\
                  pub const C: Duration = Duration::from_secs(2 * 60);\n";
    let known = in_source(source);
    assert_eq!((known["A"], known["B"], known["C"]), (2048, 2049, 120));
    assert_eq!(
        (as_written("2 KiB"), as_written("10,000"), as_written("2 min")),
        (2048, 10_000, 120)
    );
}
