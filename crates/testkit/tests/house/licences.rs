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
fn every_licence_is_allowed() {
    let allowed = list("licenses", "allow");
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| !is_allowed(text(package, "license").unwrap_or("none"), &allowed))
        .map(|package| format!("{} {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "\n{}", refused.join("\n"));
}

#[test]
fn every_crate_comes_from_the_one_registry() {
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
fn nothing_banned_is_built_in() {
    let banned = list("bans", "deny");
    assert!(banned.contains(&"openssl".to_owned()), "{banned:?}");
    let packages = packages();
    let found: Vec<&str> = packages.iter().filter_map(|p| text(p, "name")).collect();
    let found: Vec<_> = found.iter().filter(|name| banned.iter().any(|b| b == *name)).collect();
    assert!(found.is_empty(), "{found:?}");
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
