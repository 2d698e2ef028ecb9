//! The table of roles in docs/security.md is generated, and does not fall behind.

use duly_api::{Access, route_table};
use duly_core::access::AccessRole;

const DOCUMENT: &str = include_str!("../../../../../docs/security.md");
const BEGIN: &str = "<!-- roles: generated -->\n";
const END: &str = "<!-- end -->";

/// One row per route, with a mark for each role that may call it.
fn generated() -> String {
    let mut rows: Vec<String> = Vec::new();
    let table = route_table();
    for (method, path, access) in table.iter() {
        let access = access.unwrap();
        if access == Access::Public {
            continue;
        }
        let held: Vec<_> = access.roles().collect();
        let mark = |role: &AccessRole| if held.contains(role) { "✓" } else { "" };
        let marks: Vec<_> = AccessRole::ALL.iter().map(mark).collect();
        let whose = if access.is_for_installation() { "`*`" } else { "" };
        rows.push(format!("| `{path}` | {method} | {} | {whose} |", marks.join(" | ")));
    }
    rows.sort();
    let roles: Vec<_> = AccessRole::ALL.iter().map(|role| role.as_str()).collect();
    let head = format!("| route | method | {} | tenant |", roles.join(" | "));
    let rule = format!("|---|---|{}---|", "---|".repeat(roles.len()));
    format!("{head}\n{rule}\n{}\n", rows.join("\n"))
}

#[test]
fn the_table_of_roles_is_true() {
    let written = DOCUMENT.split(BEGIN).nth(1).and_then(|rest| rest.split(END).next());
    let generated = generated();
    assert!(
        written == Some(generated.as_str()),
        "the table of roles in docs/security.md has fallen behind; it must be:\n{generated}"
    );
}
