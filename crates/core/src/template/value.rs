//! Values of expressions: JSON text that is looked into only where it is asked for.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use serde_json::value::RawValue;

use crate::limits::PAYLOAD_BYTES;

/// JSON text, written as it is spelled.
#[derive(Clone, Debug)]
pub(super) struct Raw(Arc<str>);

impl Raw {
    pub(super) fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// A field of an object.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        self.fields()?.get(name).map(|value| Self::new(value.get()))
    }

    /// An item of an array.
    pub(super) fn item(&self, index: usize) -> Option<Self> {
        self.items()?.get(index).map(|value| Self::new(value.get()))
    }

    fn fields(&self) -> Option<HashMap<String, &RawValue>> {
        self.0.starts_with('{').then(|| serde_json::from_str(&self.0).ok())?
    }

    fn items(&self) -> Option<Vec<&RawValue>> {
        self.0.starts_with('[').then(|| serde_json::from_str(&self.0).ok())?
    }

    /// As something that expressions can work with. A number that no type can hold stays text, which
    /// is still written exactly.
    pub(super) fn to_value(&self) -> Value {
        match self.0.as_bytes().first() {
            Some(b'"') => Value::from(serde_json::from_str::<String>(&self.0).unwrap_or_default()),
            Some(b't') => Value::from(true),
            Some(b'f') => Value::from(false),
            Some(b'n') => Value::from(()),
            Some(b'{' | b'[') | None => Value::from_object(self.clone()),
            Some(_) if self.0.contains(['.', 'e', 'E']) => match self.0.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                _ => Value::from_object(self.clone()),
            },
            Some(_) => match self.0.parse::<i128>() {
                Ok(number) => Value::from(number),
                Err(_) => Value::from_object(self.clone()),
            },
        }
    }
}

impl Object for Raw {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.0.as_bytes().first() {
            Some(b'{') => ObjectRepr::Map,
            Some(b'[') => ObjectRepr::Seq,
            _ => ObjectRepr::Plain,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = match key.as_str() {
            Some(name) => self.field(name),
            None => self.item(key.as_usize()?),
        };
        found.map(|found| found.to_value())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if let Some(fields) = self.fields() {
            let mut names: Vec<_> = fields.into_keys().collect();
            names.sort_unstable();
            return Enumerator::Values(names.into_iter().map(Value::from).collect());
        }
        match self.items() {
            Some(items) => Enumerator::Seq(items.len()),
            None => Enumerator::NonEnumerable,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string can always be written as JSON")
}

/// Writes a value as JSON, unless it takes more than so many bytes.
pub(super) fn write_json(value: &Value, most: usize, out: &mut String) -> Result<(), String> {
    let begin = out.len();
    let room = |out: &String| match most.checked_sub(out.len() - begin) {
        Some(room) => Ok(room),
        None => Err("it becomes too large".to_owned()),
    };
    if let Some(raw) = value.downcast_object_ref::<Raw>() {
        out.push_str(raw.text());
        return room(out).map(drop);
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)?),
        ValueKind::String => out.push_str(&quote(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter().map_err(|bad| bad.to_string())?.enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_json(&item, room(out)?, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().map_err(|bad| bad.to_string())?.enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&quote(&key.to_string()));
                out.push(':');
                let item = value.get_item(&key).map_err(|bad| bad.to_string())?;
                write_json(&item, room(out)?, out)?;
            }
            out.push('}');
        }
        ValueKind::Undefined | ValueKind::Bytes | ValueKind::Plain | ValueKind::Invalid | _ => {
            return Err(format!("it is {}, which is no JSON", value.kind()));
        }
    }
    room(out).map(drop)
}

fn number(value: &Value) -> Result<String, String> {
    if value.is_integer() {
        return Ok(value.to_string());
    }
    let number = f64::try_from(value.clone()).map_err(|bad| bad.to_string())?;
    let number = serde_json::Number::from_f64(number).ok_or("it is no finite number")?;
    Ok(number.to_string())
}

/// The items of a list with a text between them.
pub(super) fn join(items: &Value, between: Option<&str>) -> Result<String, Error> {
    let (mut joined, mut begun) = (String::new(), false);
    for item in items.try_iter()? {
        if std::mem::replace(&mut begun, true) {
            joined.push_str(between.unwrap_or_default());
        }
        match item.as_str() {
            Some(text) => joined.push_str(text),
            None => write_json(&item, PAYLOAD_BYTES, &mut joined).map_err(invalid)?,
        }
        if joined.len() > PAYLOAD_BYTES {
            return Err(invalid("it becomes too large".to_owned()));
        }
    }
    Ok(joined)
}

/// A value as JSON text.
pub(super) fn json(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write_json(value, PAYLOAD_BYTES, &mut text).map_err(invalid)?;
    Ok(text)
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
