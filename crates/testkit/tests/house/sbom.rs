//! The bill of materials that `make sbom` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use duly_testkit::sbom;
use serde_json::Value;

use crate::tree::{metadata, read, root};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// What cargo builds the binary from, beside itself, as names with versions.
fn used(edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "duly-cli", "-e", edges, "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = text.lines().filter(|line| !line.starts_with("duly-cli "));
    lines.map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// The crates that take part in the build of the binary, for this platform, and no others.
#[test]
fn s31_the_bill_of_materials_holds_what_the_binary_uses_of_the_lock_file() {
    let bill = sbom::bill().expect("a bill");
    let components = list(&bill, "components");
    let ids = |scopes: &[&str]| -> BTreeSet<String> {
        let of = components.iter().filter(|it| scopes.contains(&text(it, "scope")));
        of.map(|it| format!("{} v{}", text(it, "name"), text(it, "version"))).collect()
    };
    assert_eq!(ids(&["required", "excluded"]), used("normal,build"));
    assert_eq!(ids(&["required"]), used("normal"));
    assert_eq!(components.len(), used("normal,build").len(), "each once");
    let lock = read("Cargo.lock");
    for component in components {
        let (name, version) = (text(component, "name"), text(component, "version"));
        let entry = format!("\nname = \"{name}\"\nversion = \"{version}\"\n");
        let (_, rest) = lock.split_once(&entry).unwrap_or_else(|| panic!("not locked: {entry}"));
        let rest = rest.split("[[package]]").next().unwrap_or(rest);
        let hash = component["hashes"][0]["content"].as_str();
        assert_eq!(rest.contains("checksum = "), hash.is_some(), "{name}");
        assert!(hash.is_none_or(|hash| rest.contains(hash)), "{name}");
        assert_eq!(hash.is_some(), component["purl"].is_string(), "{name}");
    }
    for (name, is_in) in
        [("tokio", true), ("rustls", true), ("proptest", false), ("duly-testkit", false)]
    {
        let found = components.iter().any(|it| text(it, "name") == name);
        assert_eq!(found, is_in, "{name}");
    }
}

#[test]
fn s31_the_bill_of_materials_is_whole() {
    let bill = sbom::bill().expect("a bill");
    assert_eq!((text(&bill, "bomFormat"), text(&bill, "specVersion")), ("CycloneDX", "1.5"));
    assert_eq!(text(&bill["metadata"]["component"], "name"), "duly");
    let components = list(&bill, "components").iter().chain([&bill["metadata"]["component"]]);
    let known: BTreeSet<&str> = components.map(|it| text(it, "bom-ref")).collect();
    let dependencies = list(&bill, "dependencies");
    assert_eq!(dependencies.iter().map(|it| text(it, "ref")).collect::<BTreeSet<_>>(), known);
    let mut uses = BTreeMap::new();
    for dependency in dependencies {
        let on = list(dependency, "dependsOn").iter().map(|it| it.as_str().expect("a reference"));
        let on: BTreeSet<&str> = on.collect();
        assert!(on.is_subset(&known), "{dependency}");
        uses.insert(text(dependency, "ref"), on);
    }
    // Those that a crate uses are among those that its manifest names.
    let metadata = metadata(&[]);
    for package in metadata["packages"].as_array().expect("packages") {
        let id = format!("{}@{}", text(package, "name"), text(package, "version"));
        let named = list(package, "dependencies").iter().map(|it| text(it, "name"));
        let named: BTreeSet<&str> = named.collect();
        let on = uses.get(id.as_str()).into_iter().flatten();
        let unnamed: Vec<_> =
            on.filter(|it| !named.contains(it.split('@').next().unwrap_or(it))).collect();
        assert!(unnamed.is_empty(), "{id}: {unnamed:?}");
    }
    let direct = uses.values().map(BTreeSet::len).sum::<usize>();
    assert!(direct > known.len(), "{direct} edges between {} crates", known.len());
}
