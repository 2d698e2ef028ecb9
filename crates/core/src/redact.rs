//! Which parts of payloads are shown to nobody but the worker that runs the task.

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::value::RawValue;

use crate::limits::{REDACT_CHARS, REDACT_PATHS};
use crate::submit::FieldError;

/// What is shown in the place of what is not.
pub const MASK: &str = "***";
/// The same as JSON.
const MASK_JSON: &str = "\"***\"";
/// Stands for every key and every index.
const ANY: &str = "*";

/// Checks the paths of a setting: JSON pointers such as `/card/number`, in which `*` stands for every key
/// and every index. The errors are those of a body that holds them as `redact`.
pub fn check_paths(paths: Vec<String>, errors: &mut Vec<FieldError>) -> Vec<String> {
    if paths.len() > REDACT_PATHS {
        let detail = format!("has {} items and may have {REDACT_PATHS}", paths.len());
        errors.push(FieldError::of("redact", "TOO_MANY", detail));
    }
    let is_path = |path: &str| {
        path.len() > 1
            && path.starts_with('/')
            && path.chars().count() <= REDACT_CHARS
            && !path.contains('\0')
    };
    for (index, path) in paths.iter().enumerate().take(REDACT_PATHS) {
        if !is_path(path) {
            let detail = format!(
                "must be a JSON pointer of at most {REDACT_CHARS} characters, such as /card/number"
            );
            let pointer = format!("/redact/{index}");
            errors.push(FieldError { pointer, code: "INVALID_PATH", detail });
        }
    }
    paths
}

/// The paths of one tenant, ready to be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    paths: Vec<Vec<String>>,
}

impl Redaction {
    /// Of these paths.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a String>) -> Self {
        let segments = |path: &'a String| {
            let parts = path.split('/').skip(1);
            parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
        };
        Self { paths: paths.into_iter().map(segments).collect() }
    }

    /// Whether nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The same JSON text with the mask wherever a path leads. What cannot be read is masked as a whole.
    pub fn mask<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(json);
        }
        let paths: Vec<&[String]> = self.paths.iter().map(Vec::as_slice).collect();
        masked(json.trim(), &paths).unwrap_or(Cow::Borrowed(MASK_JSON))
    }

    /// Whether the mask itself stands where a path leads: the text was read masked, and storing it would
    /// lose what the mask stands for.
    pub fn holds_mask(&self, json: &str) -> bool {
        let paths: Vec<&[String]> = self.paths.iter().map(Vec::as_slice).collect();
        holds_mask(json.trim(), &paths).unwrap_or(false)
    }
}

/// What each path has left below this key; those that do not lead there are left out.
fn below<'p>(paths: &[&'p [String]], key: &str) -> Vec<&'p [String]> {
    let rest = |path: &&'p [String]| {
        let (first, rest) = path.split_first()?;
        (first == ANY || first == key).then_some(rest)
    };
    paths.iter().filter_map(rest).collect()
}

fn masked<'a>(json: &'a str, paths: &[&[String]]) -> serde_json::Result<Cow<'a, str>> {
    if paths.iter().any(|path| path.is_empty()) {
        return Ok(Cow::Borrowed(MASK_JSON));
    }
    if paths.is_empty() {
        return Ok(Cow::Borrowed(json));
    }
    let mut parts = Vec::new();
    match json.as_bytes().first() {
        Some(b'{') => {
            for (key, value) in members(json)? {
                let name = serde_json::to_string(&key)?;
                parts.push(format!("{name}:{}", masked(value.get(), &below(paths, &key))?));
            }
            Ok(Cow::Owned(format!("{{{}}}", parts.join(","))))
        }
        Some(b'[') => {
            for (index, value) in serde_json::from_str::<Vec<&RawValue>>(json)?.iter().enumerate() {
                let own = below(paths, &index.to_string());
                parts.push(masked(value.get(), &own)?.into_owned());
            }
            Ok(Cow::Owned(format!("[{}]", parts.join(","))))
        }
        _ => Ok(Cow::Borrowed(json)),
    }
}

fn holds_mask(json: &str, paths: &[&[String]]) -> serde_json::Result<bool> {
    if paths.iter().any(|path| path.is_empty()) {
        return Ok(serde_json::from_str::<String>(json).is_ok_and(|text| text == MASK));
    }
    match json.as_bytes().first() {
        Some(b'{') if !paths.is_empty() => {
            for (key, value) in members(json)? {
                if holds_mask(value.get(), &below(paths, &key))? {
                    return Ok(true);
                }
            }
        }
        Some(b'[') if !paths.is_empty() => {
            for (index, value) in serde_json::from_str::<Vec<&RawValue>>(json)?.iter().enumerate() {
                if holds_mask(value.get(), &below(paths, &index.to_string()))? {
                    return Ok(true);
                }
            }
        }
        _ => {}
    }
    Ok(false)
}

/// The members of an object, in their order, also those of one name.
fn members(json: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    struct Members<'a>(Vec<(String, &'a RawValue)>);

    impl<'de> serde::Deserialize<'de> for Members<'de> {
        fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            source.deserialize_map(Visitor)
        }
    }

    struct Visitor;

    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Members<'de>, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(Members(members))
        }
    }

    let mut source = serde_json::Deserializer::from_str(json);
    Ok(Members::deserialize(&mut source)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(paths: &[&str]) -> Redaction {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        Redaction::new(&paths)
    }

    #[test]
    fn what_a_path_leads_to_is_masked_and_the_rest_stays_as_it_was() {
        let json =
            r#"{"b":1.50,"card":{"number":"4111","cvc":123},"a":[ {"x":1},{"x":[2]} ],"~":0}"#;
        for (paths, expected) in [
            (
                &["/card/number"][..],
                r#"{"b":1.50,"card":{"number":"***","cvc":123},"a":[ {"x":1},{"x":[2]} ],"~":0}"#,
            ),
            (&["/card"], r#"{"b":1.50,"card":"***","a":[ {"x":1},{"x":[2]} ],"~":0}"#),
            (
                &["/a/*/x"],
                r#"{"b":1.50,"card":{"number":"4111","cvc":123},"a":[{"x":"***"},{"x":"***"}],"~":0}"#,
            ),
            (
                &["/a/1"],
                r#"{"b":1.50,"card":{"number":"4111","cvc":123},"a":[{"x":1},"***"],"~":0}"#,
            ),
            (
                &["/card/*", "/~0"],
                r#"{"b":1.50,"card":{"number":"***","cvc":"***"},"a":[ {"x":1},{"x":[2]} ],"~":"***"}"#,
            ),
            (&["/b/c", "/none"], json),
        ] {
            assert_eq!(redaction(paths).mask(json), expected, "{paths:?}");
        }
        assert_eq!(redaction(&["/x"]).mask("17"), "17");
        assert_eq!(redaction(&["/x"]).mask("{\"x\""), "\"***\"", "damaged text is not shown");
        assert_eq!(redaction(&["/x"]).mask(r#"{"x":1,"x":2}"#), r#"{"x":"***","x":"***"}"#);
    }

    #[test]
    fn the_mask_is_found_where_a_path_leads_and_nowhere_else() {
        let both = redaction(&["/card/number", "/list/*"]);
        assert!(both.holds_mask(r#"{"card":{"number":"***"}}"#));
        assert!(both.holds_mask(r#"{"list":["a","\u002a**"]}"#), "however it is spelled");
        for json in [r#"{"card":{"number":"****","other":"***"}}"#, r#"{"note":"***"}"#, "\"***\""]
        {
            assert!(!both.holds_mask(json), "{json}");
        }
        assert!(!Redaction::default().holds_mask("\"***\""));
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let mut errors = Vec::new();
        let bad = ["", "/", "card", "/a\0"].map(str::to_owned).to_vec();
        check_paths(bad, &mut errors);
        assert_eq!(errors.len(), 4);
        let mut errors = Vec::new();
        check_paths(vec!["/a/*/b".to_owned()], &mut errors);
        assert!(errors.is_empty());
        check_paths(vec!["/a".to_owned(); REDACT_PATHS + 1], &mut errors);
        assert_eq!(errors.len(), 1);
    }
}
