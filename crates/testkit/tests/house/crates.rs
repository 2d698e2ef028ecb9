//! Which crate may use which: the table in the architecture document is the law, in both
//! directions, so that it neither lags behind nor promises what is not there.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown::{section, table_rows, unticked};
use crate::tree::{metadata, read};

type Edges = BTreeMap<String, BTreeSet<String>>;

/// What the domain must never depend on: it does no I/O, reads no clock and draws no number.
const IMPURE: [&str; 8] =
    ["axum", "hyper", "rand", "reqwest", "rusqlite", "rustix", "tokio", "tracing"];

fn used() -> Edges {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("packages");
    let mut edges = Edges::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name").to_owned();
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        // Tests may see everything.
        let uses = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        let names = uses.map(|dependency| dependency["name"].as_str().expect("a name").to_owned());
        edges.insert(name, names.collect());
    }
    edges
}

fn documented(text: &str) -> Edges {
    let rows = table_rows(section(text, "### Crate edges"));
    let row = |row: Vec<String>| {
        let uses = row[1].split(',').map(|cell| unticked(cell.trim()).to_owned());
        (unticked(&row[0]).to_owned(), uses.filter(|name| name != "—").collect())
    };
    rows.into_iter().map(row).collect()
}

fn own(edges: Edges) -> Edges {
    let names: BTreeSet<String> = edges.keys().cloned().collect();
    edges.into_iter().map(|(name, uses)| (name, &uses & &names)).collect()
}

#[test]
fn crates_use_each_other_as_documented() {
    assert_eq!(own(used()), documented(&read("docs/ARCHITECTURE.md")));
}

#[test]
fn the_table_is_read_as_it_is_written() {
    let table = "### Crate edges\n| crate | uses |\n|---|---|\n| `a` | — |\n| `b` | `a`, `c` |\n";
    let edges = documented(table);
    assert!(edges["a"].is_empty());
    assert_eq!(edges["b"], BTreeSet::from(["a".to_owned(), "c".to_owned()]));
}

#[test]
fn the_domain_is_pure() {
    let core = &used()["duly-core"];
    let impure: Vec<_> = IMPURE.iter().filter(|name| core.contains(**name)).collect();
    assert!(impure.is_empty(), "duly-core depends on {impure:?}");
}

/// Files outside the stores' own crate that may name a concrete one: the wiring, the benchmark, which
/// measures it beside bare SQLite, and the example of an embedded engine.
const PICKERS: [&str; 3] =
    ["crates/cli/src/wiring.rs", "crates/cli/src/wiring/store.rs", "examples/embedded/src/main.rs"];

#[test]
fn only_the_wiring_picks_a_store() {
    let files = crate::tree::files_ending(".rs");
    let names_one = |text: &str| text.contains(concat!("Sqlite", "Store"));
    let is_outside = |path: &str| !path.starts_with("crates/store/") && !path.contains("/tests/");
    let pickers = files.iter().filter(|file| names_one(&file.text) && is_outside(&file.path));
    let strangers: Vec<_> = pickers.filter(|file| !PICKERS.contains(&file.path.as_str())).collect();
    assert!(strangers.is_empty(), "{:?}", strangers.iter().map(|f| &f.path).collect::<Vec<_>>());
}
