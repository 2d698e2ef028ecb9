//! The fields of one JSON object: their values in the text, and where they stand.

use std::cell::Cell;
use std::fmt;

use serde_json::value::RawValue;

use super::names;

/// The values of an object's fields, in the order of its wire type; no type has more.
pub(super) type Values<'a> = [Option<&'a RawValue>; 20];

/// A JSON pointer to a value in a body. It is written as text only if something is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pointer<'p> {
    /// The whole body.
    Root,
    Field(&'p Pointer<'p>, &'p str),
    Item(&'p Pointer<'p>, usize),
}

impl<'p> Pointer<'p> {
    pub(crate) fn field(&'p self, name: &'p str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Item(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// A value that may be absent, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a, 'p> {
    pub(crate) value: Option<&'a RawValue>,
    pub(crate) at: Pointer<'p>,
}

impl<'a, 'p> Field<'a, 'p> {
    /// The whole body.
    pub(crate) fn body(value: &'a RawValue) -> Self {
        Self { value: Some(value), at: Pointer::Root }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// An item of this list.
    pub(crate) fn item(&'p self, index: usize, value: &'a RawValue) -> Self {
        Self { value: Some(value), at: self.at.item(index) }
    }
}

/// The fields of an object, as its wire type names them. Each must be asked for: a field of a wire
/// type that the server does not read would be ignored without notice.
#[derive(Debug)]
pub(crate) struct Object<'a, 'p> {
    at: Pointer<'p>,
    names: &'static [&'static str],
    values: Values<'a>,
    /// One bit for each field that was asked for.
    asked: Cell<u32>,
    /// The field after the one that was asked for last.
    next: Cell<usize>,
}

impl<'a, 'p> Object<'a, 'p> {
    pub(super) fn new(at: Pointer<'p>, names: &'static [&'static str], values: Values<'a>) -> Self {
        Self { at, names, values, asked: Cell::new(0), next: Cell::new(0) }
    }

    /// A field; `null` counts as absent.
    pub(crate) fn field(&self, name: &'static str) -> Field<'a, '_> {
        let field = self.field_or_null(name);
        Field { value: field.value.filter(|value| value.get() != "null"), ..field }
    }

    /// A field for which `null` differs from absent.
    pub(crate) fn field_or_null(&self, name: &'static str) -> Field<'a, '_> {
        let known = names::position(self.names, self.next.get(), name);
        let index = known.expect("the server asks for fields of the wire type");
        self.next.set(index + 1);
        self.asked.set(self.asked.get() | 1 << index);
        Field { value: self.values[index], at: self.at.field(name) }
    }
}

impl Drop for Object<'_, '_> {
    fn drop(&mut self) {
        let is_asked = |index: &usize| self.asked.get() & 1 << index != 0;
        debug_assert!(
            std::thread::panicking() || (0..self.names.len()).all(|index| is_asked(&index)),
            "the server ignores some of the fields {:?}",
            self.names
        );
    }
}
