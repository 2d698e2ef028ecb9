//! What the program is built from, judged by `deny.toml` as cargo-deny would, which is not
//! installed everywhere: licences, sources and banned crates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::{metadata, read, root};

/// The strings of a list such as `allow = [ "MIT", … ]` in a section of `deny.toml`.
fn list(section: &str, key: &str) -> Vec<String> {
    let text = read("deny.toml");
    let rest = text.split(&format!("[{section}]\n")).nth(1).expect("the section");
    let rest = rest.split("\n[").next().unwrap_or(rest);
    let list = rest
        .split(&format!("\n{key} = ["))
        .nth(1)
        .or_else(|| rest.strip_prefix(&format!("{key} = [")));
    let list = list.unwrap_or_else(|| panic!("{section}.{key} is missing")).split("\n]").next();
    let lines = list.unwrap_or_default().lines();
    let code = lines.map(|line| line.split('#').next().unwrap_or(""));
    code.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn packages() -> Vec<Value> {
    let metadata = metadata(&[]);
    metadata["packages"].as_array().expect("packages").clone()
}

fn text<'a>(package: &'a Value, key: &str) -> Option<&'a str> {
    package[key].as_str()
}

/// Whether a licence expression can be met with allowed licences alone.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // The old way to say OR, and brackets as words of their own.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "cannot read the licence {expression:?}");
    met
}

fn either(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed);
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let word = words.get(*at).copied().expect("an expression does not end here");
    *at += 1;
    if word == "(" {
        let met = either(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"), "a bracket is not closed");
        *at += 1;
        return met;
    }
    let mut licence = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        licence += &format!(" WITH {}", words.get(*at + 1).expect("an exception"));
        *at += 2;
    }
    allowed.contains(&licence)
}

#[test]
fn s31_every_licence_is_allowed() {
    let allowed = list("licenses", "allow");
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| !is_allowed(text(package, "license").unwrap_or("none"), &allowed))
        .map(|package| format!("{} {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "\n{}", refused.join("\n"));
}

#[test]
fn s31_every_crate_comes_from_the_one_registry() {
    let packages = packages();
    let sources: BTreeSet<&str> = packages.iter().filter_map(|p| text(p, "source")).collect();
    let is_registry = |source: &&str| source.starts_with("registry+");
    assert!(sources.len() == 1 && sources.iter().all(is_registry), "{sources:?}");
    let outside = |package: &&Value| {
        let path = text(package, "manifest_path").unwrap_or("");
        package["source"].is_null() && !path.starts_with(&*root().to_string_lossy())
    };
    let outside: Vec<_> = packages.iter().filter(outside).map(|p| &p["name"]).collect();
    assert!(outside.is_empty(), "from outside the workspace: {outside:?}");
}

#[test]
fn s31_nothing_banned_is_built_in() {
    let banned = list("bans", "deny");
    assert!(banned.contains(&"openssl".to_owned()), "{banned:?}");
    let packages = packages();
    let found: Vec<&str> = packages.iter().filter_map(|p| text(p, "name")).collect();
    let found: Vec<_> = found.iter().filter(|name| banned.iter().any(|b| b == *name)).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn s31_the_rules_for_the_supply_chain_stay() {
    let rules = read("deny.toml");
    for rule in [
        "wildcards = \"deny\"",
        "unknown-registry = \"deny\"",
        "unknown-git = \"deny\"",
        "\"openssl\"",
    ] {
        assert!(rules.contains(rule), "deny.toml no longer says {rule}");
    }
    assert!(read("Cargo.toml").contains("\nunsafe_code = \"forbid\"\n"));
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let is_open = dependency["req"] == "*" && dependency["path"].is_null();
            assert!(!is_open, "{} takes any version of {}", package["name"], dependency["name"]);
        }
    }
}

/// Builds take the versions of the lock file, everywhere: another one was not looked at.
#[test]
fn s31_every_build_is_of_the_lock_file() {
    let scripts = ["Makefile", "scripts/test", "scripts/check-slots", ".ci/run"];
    let mut seen = 0;
    for script in scripts {
        let text = read(script);
        let joined = text.replace("\\\n", " ");
        for line in joined.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let builds = ["cargo", "$(CARGO)", "${CARGO:-cargo}"].iter().any(|cargo| {
                ["build", "test", "clippy", "doc", "run", "install"]
                    .iter()
                    .any(|verb| line.contains(&format!("{cargo} {verb} ")))
            });
            let is_locked =
                ["--locked", "TEST_FLAGS", "test_flags"].iter().any(|it| line.contains(it));
            assert!(!builds || is_locked, "{script}: {line}");
            seen += usize::from(builds);
        }
    }
    assert!(seen >= 8, "only {seen} builds found");
}

/// The lock file has a checksum for everything from outside.
#[test]
fn s31_everything_from_outside_has_a_checksum() {
    let lock = read("Cargo.lock");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    let outside = packages.iter().filter(|package| package.contains("\nsource = "));
    let unchecked: Vec<_> = outside.filter(|package| !package.contains("\nchecksum = ")).collect();
    assert!(packages.len() > 100 && unchecked.is_empty(), "{unchecked:?}");
    let pinned = read("scripts/check-api.txt");
    let packages = pinned.lines().filter(|line| line.contains("=="));
    assert!(packages.count() > 10 && pinned.contains("--hash=sha256:"));
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("MIT/GPL-3.0", true),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("(GPL-3.0 OR MIT) AND Zlib", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), met, "{expression}");
    }
}
