//! Rows as JSON text, as many as fit.

use std::collections::BTreeSet;

use duly_core::limits::SQL_ROWS_BYTES;

use super::{Answer, SqlError};

/// Rows that are collected.
#[derive(Debug)]
pub(super) struct Rows {
    /// The names of the columns as JSON strings.
    columns: Vec<String>,
    text: String,
    count: usize,
    max: usize,
    is_truncated: bool,
}

impl Rows {
    /// No rows of these columns yet.
    pub(super) fn new<'a>(
        columns: impl IntoIterator<Item = &'a str>,
        max: usize,
    ) -> Result<Self, SqlError> {
        let mut seen = BTreeSet::new();
        let mut quoted = Vec::new();
        for name in columns {
            if !seen.insert(name) {
                let why = format!("two columns are called `{name}`; give one another name with AS");
                return Err(SqlError::Statement(why));
            }
            quoted.push(string(name));
        }
        Ok(Self { columns: quoted, text: "[".to_owned(), count: 0, max, is_truncated: false })
    }

    /// Adds a row of JSON texts, one for each column. Returns whether there may be room for another.
    pub(super) fn push(&mut self, values: &[String]) -> bool {
        let mut row = String::with_capacity(64);
        row.push_str(if self.count == 0 { "{" } else { ",{" });
        for (index, (name, value)) in self.columns.iter().zip(values).enumerate() {
            if index > 0 {
                row.push(',');
            }
            row.push_str(name);
            row.push(':');
            row.push_str(value);
        }
        row.push('}');
        if self.count == self.max || self.text.len() + row.len() >= SQL_ROWS_BYTES {
            self.is_truncated = true;
            return false;
        }
        self.text.push_str(&row);
        self.count += 1;
        true
    }

    /// All of them.
    pub(super) fn end(mut self) -> Answer {
        self.text.push(']');
        Answer { rows: self.text, is_truncated: self.is_truncated, affected: None }
    }
}

/// A text as JSON.
pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_objects_in_the_order_of_their_columns() {
        let mut rows = Rows::new(["b", "a\""], 2).unwrap();
        assert!(rows.push(&["1".to_owned(), "null".to_owned()]));
        assert!(rows.push(&["2".to_owned(), "[]".to_owned()]));
        assert!(!rows.push(&["3".to_owned(), "0".to_owned()]));
        let answer = rows.end();
        assert_eq!(answer.rows, r#"[{"b":1,"a\"":null},{"b":2,"a\"":[]}]"#);
        assert!(answer.is_truncated);
    }

    #[test]
    fn bytes_are_bounded() {
        let mut rows = Rows::new(["a"], 1000).unwrap();
        let large = string(&"x".repeat(SQL_ROWS_BYTES / 3));
        let kept = (0..1000).take_while(|_| rows.push(std::slice::from_ref(&large))).count();
        assert_eq!(kept, 2);
        assert!(rows.end().rows.len() <= SQL_ROWS_BYTES);
    }

    #[test]
    fn a_name_is_used_once() {
        let why = Rows::new(["id", "id"], 1).unwrap_err().to_string();
        assert!(why.contains("`id`"), "{why}");
    }
}
