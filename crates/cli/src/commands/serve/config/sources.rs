//! The key `sources` of the configuration file: databases that tasks of the type `sql` may query.

use std::collections::BTreeMap;
use std::path::PathBuf;

use duly_core::limits::SQL_SOURCES;
use duly_core::name::TenantName;
use duly_worker::sql::{Source, Sources};
use serde::Deserialize;

use crate::exit::Usage;

/// Characters of the name of a source.
const NAME_CHARS: usize = 100;

/// The fields of one source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::commands::serve) struct SourceFields {
    url: Option<String>,
    url_file: Option<PathBuf>,
    #[serde(default)]
    tenants: Vec<String>,
    #[serde(default)]
    write: bool,
}

/// Reads the files that the fields name. It opens no database.
pub(super) fn sources(fields: BTreeMap<String, SourceFields>) -> Result<Sources, Usage> {
    if fields.len() > SQL_SOURCES {
        return Err(Usage::new(format!("sources: there may be at most {SQL_SOURCES}")));
    }
    let mut sources = BTreeMap::new();
    for (name, fields) in fields {
        let source = source(&name, fields);
        let source = source.map_err(|why| Usage::new(format!("sources.{name}{why}")))?;
        sources.insert(name, source);
    }
    Ok(Sources::new(sources))
}

fn source(name: &str, fields: SourceFields) -> Result<Source, String> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    if !(1..=NAME_CHARS).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(": a name consists of letters, digits, `.`, `_` and `-`".to_owned());
    }
    let url = match (fields.url, fields.url_file) {
        (Some(url), None) => url,
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path);
            let text =
                text.map_err(|why| format!(".urlFile: {}: cannot be read: {why}", path.display()))?;
            text.trim().to_owned()
        }
        _ => return Err(": give url or urlFile".to_owned()),
    };
    let tenant =
        |name: &String| TenantName::new(name).map_err(|why| format!(".tenants: {name:?}: {why}"));
    let tenants: Result<Vec<TenantName>, String> = fields.tenants.iter().map(tenant).collect();
    Source::new(&url, tenants?, fields.write).map_err(|why| format!(": the address {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Sources, String> {
        let fields = serde_yaml_ng::from_str(text).map_err(|why| why.to_string())?;
        sources(fields).map_err(|why| why.to_string())
    }

    #[test]
    fn sources_are_described_by_an_address_and_their_tenants() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("url");
        std::fs::write(&file, "postgres://duly:canary@db.example.com/shop\n").unwrap();
        let text = format!(
            "{{shop: {{urlFile: {}, tenants: [acme]}}, notes: {{url: 'sqlite:notes.db', write: true}}}}",
            file.display()
        );
        let shown = format!("{:?}", parsed(&text).unwrap());
        for part in ["shop", "acme", "notes.db", "may_write: true"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn s10_mistakes_name_the_key_and_never_show_the_address() {
        for (text, words) in [
            ("{a: {}}", "sources.a: give url or urlFile"),
            ("{a: {url: x, urlFile: y}}", "sources.a: give url or urlFile"),
            ("{a: {url: 'mysql://canary@b/c'}}", "sources.a: the address must be postgres://"),
            ("{a: {url: 'postgres://canary@b:port/c'}}", "sources.a: the address must be"),
            ("{a: {url: 'sqlite:'}}", "sources.a: the address must be"),
            ("{a: {urlFile: nowhere}}", "sources.a.urlFile: nowhere"),
            ("{a: {url: 'sqlite:x', tenants: ['*']}}", "sources.a.tenants: \"*\""),
            ("{a b: {url: 'sqlite:x'}}", "a name consists of"),
            ("{a: {url: 'sqlite:x', tenant: b}}", "unknown field `tenant`"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
            assert!(!why.contains("canary"), "{why}");
        }
    }
}
