//! Expressions: where they are in a string, whether they can be read, and what they stand for.

use std::sync::LazyLock;

use minijinja::value::Value;
use minijinja::{Environment, Error, UndefinedBehavior};

use super::value::{self, Raw};
use crate::limits::{EXPRESSION_CHARS, PAYLOAD_BYTES, TEMPLATE_FUEL};

/// The one name that expressions know.
const PARENTS: &str = "parents";

/// What is wrong with a string, and where: in bytes.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) at: usize,
    pub(super) detail: String,
}

impl Flaw {
    pub(super) fn new(at: usize, detail: impl Into<String>) -> Self {
        Self { at, detail: detail.into() }
    }
}

/// A part of a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// What stands between the braces, and where it begins.
    Expression {
        source: &'a str,
        at: usize,
    },
}

/// Whether a string has anything to render.
pub(super) fn has_marks(text: &str) -> bool {
    ["{{", "{%", "{#"].into_iter().any(|mark| text.contains(mark))
}

/// The parts of a string.
pub(super) fn split(text: &str) -> Result<Vec<Piece<'_>>, Flaw> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    let bytes = text.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"{%" | b"{#" => {
                let detail = "only expressions in {{ }} are supported, no statements or comments";
                return Err(Flaw::new(at, detail));
            }
            b"{{" => {
                if from < at {
                    pieces.push(Piece::Text(&text[from..at]));
                }
                let end = end(text, at + 2).ok_or_else(|| Flaw::new(at, "}} is missing"))?;
                pieces.push(Piece::Expression { source: &text[at + 2..end], at: at + 2 });
                (from, at) = (end + 2, end + 2);
            }
            _ => at += 1,
        }
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    Ok(pieces)
}

/// Where the braces close. Those in strings and in objects do not count.
fn end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut quote) = (start, 0_usize, None);
    while let Some(byte) = bytes.get(at) {
        match (byte, quote) {
            (b'\\', Some(_)) => at += 1,
            (_, Some(mark)) => quote = quote.filter(|_| byte != mark),
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'{', None) => depth += 1,
            (b'}', None) if depth > 0 => depth -= 1,
            (b'}', None) if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Checks all expressions of a string.
pub(super) fn check(text: &str) -> Result<(), Flaw> {
    for piece in split(text)? {
        if let Piece::Expression { source, at } = piece {
            check_one(source, at)?;
        }
    }
    Ok(())
}

/// Refuses what could take more memory than its fuel suggests.
fn check_bounds(source: &str, at: usize) -> Result<(), Flaw> {
    if source.chars().count() > EXPRESSION_CHARS {
        let detail = format!("an expression has at most {EXPRESSION_CHARS} characters");
        return Err(Flaw::new(at, detail));
    }
    // A short product of a text and a number is a very long text.
    match outside_strings(source).find(|(_, byte)| *byte == b'*') {
        None => Ok(()),
        Some((star, _)) => Err(Flaw::new(at + star, "`*` is not supported")),
    }
}

/// The bytes of an expression that are not in a string.
fn outside_strings(source: &str) -> impl Iterator<Item = (usize, u8)> {
    let (mut quote, mut escaped) = (None, false);
    source.bytes().enumerate().filter(move |(_, byte)| match quote {
        Some(_) if std::mem::take(&mut escaped) => false,
        Some(mark) => {
            escaped = *byte == b'\\';
            quote = quote.filter(|_| *byte != mark);
            false
        }
        None => {
            quote = matches!(byte, b'"' | b'\'').then_some(*byte);
            quote.is_none()
        }
    })
}

fn check_one(source: &str, at: usize) -> Result<(), Flaw> {
    check_bounds(source, at)?;
    let compiled = ENVIRONMENT.compile_expression_owned(source.to_owned());
    let compiled = compiled.map_err(|error| flaw(&error, at))?;
    let mut unknown: Vec<_> = compiled.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| name != PARENTS);
    unknown.sort_unstable();
    match unknown.first() {
        None => Ok(()),
        Some(name) => {
            let at = at + source.find(name.as_str()).unwrap_or(0);
            Err(Flaw::new(at, format!("`{name}` is not known; expressions know `{PARENTS}` only")))
        }
    }
}

fn flaw(error: &Error, at: usize) -> Flaw {
    let detail = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    Flaw::new(at + error.range().map_or(0, |range| range.start), detail)
}

/// What expressions can refer to.
pub(super) struct Scope(Raw);

impl Scope {
    pub(super) fn new(parents: &str) -> Self {
        Self(Raw::new(format!(r#"{{"{PARENTS}":{parents}}}"#)))
    }

    /// Writes the value of an expression as JSON.
    pub(super) fn json(&self, source: &str, at: usize, out: &mut String) -> Result<(), Flaw> {
        if let Some(text) = self.copied(source, at)? {
            out.push_str(&text);
            return Ok(());
        }
        let value = self.eval(source, at)?;
        value::write_json(&value, PAYLOAD_BYTES, out).map_err(|detail| Flaw::new(at, detail))
    }

    /// Writes the value of an expression as a part of a text: a string without its marks, everything
    /// else as JSON.
    pub(super) fn text(&self, source: &str, at: usize, out: &mut String) -> Result<(), Flaw> {
        let mut json = String::new();
        self.json(source, at, &mut json)?;
        match serde_json::from_str::<String>(&json) {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push_str(&json),
        }
        Ok(())
    }

    /// The text of what a plain path leads to, exactly as it is spelled. Anything else is evaluated.
    fn copied(&self, source: &str, at: usize) -> Result<Option<String>, Flaw> {
        let Some(steps) = path(source.trim()) else { return Ok(None) };
        let mut found = self.0.clone();
        for step in steps {
            let next = match &step {
                Step::Name(name) => found.field(name),
                Step::Index(index) => found.item(*index),
            };
            found = next.ok_or_else(|| {
                Flaw::new(at, format!("`{}`: there is no `{step}`", source.trim()))
            })?;
        }
        Ok(Some(found.text().to_owned()))
    }

    fn eval(&self, source: &str, at: usize) -> Result<Value, Flaw> {
        let named = |error: Error| {
            let flaw = flaw(&error, at);
            Flaw::new(flaw.at, format!("`{}`: {}", source.trim(), flaw.detail))
        };
        check_bounds(source, at)?;
        let compiled = ENVIRONMENT.compile_expression_owned(source.to_owned()).map_err(named)?;
        let value = compiled.eval(self.0.to_value()).map_err(named)?;
        if value.is_undefined() {
            return Err(Flaw::new(at, format!("`{}` is undefined", source.trim())));
        }
        Ok(value)
    }
}

/// A step of a path.
#[derive(Debug)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Index(index) => index.fmt(f),
        }
    }
}

/// The steps of an expression such as `parents.fetch.result.rows[0]["first name"]`.
fn path(source: &str) -> Option<Vec<Step<'_>>> {
    let (first, mut rest) = name(source)?;
    let mut steps = vec![Step::Name(first)];
    while !rest.is_empty() {
        let step;
        if let Some(after) = rest.strip_prefix('.') {
            let (found, after) = name(after)?;
            (step, rest) = (Step::Name(found), after);
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            (step, rest) = (bracketed(inside.trim())?, after);
        }
        steps.push(step);
    }
    (first == PARENTS).then_some(steps)
}

fn bracketed(inside: &str) -> Option<Step<'_>> {
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    let mark = inside.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
    let key = inside.strip_prefix(mark)?.strip_suffix(mark)?;
    // What is escaped is left to the evaluation.
    (!key.contains(['\\', mark])).then_some(Step::Name(key))
}

/// The name at the beginning, and what follows it.
fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some((name, rest))
}

/// Knows some filters and tests, and no functions. What could make much of little is left out.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    use minijinja::{filters, tests};
    let mut environment = Environment::empty();
    environment.set_debug(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.add_filter("abs", filters::abs);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("float", filters::float);
    environment.add_filter("int", filters::int);
    environment.add_filter("join", value::join);
    environment.add_filter("json", value::json);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("max", filters::max);
    environment.add_filter("min", filters::min);
    environment.add_filter("round", filters::round);
    environment.add_filter("sum", filters::sum);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("none", tests::is_none);
    environment.add_test("undefined", tests::is_undefined);
    environment
});
