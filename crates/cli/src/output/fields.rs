//! One item with one field per line; long values are wrapped.

use super::color::Paint;
use super::text::{self, width};
use super::{columns, may_color, sanitize};

/// Blanks between a name and its value.
const GAP: usize = 2;
/// Values are not broken below this width.
const LEAST: usize = 20;

/// Names and values.
#[derive(Default)]
pub(crate) struct Fields(Vec<(&'static str, String, Option<Paint>)>);

impl Fields {
    /// Adds a field.
    pub(crate) fn add(&mut self, name: &'static str, value: String) {
        self.0.push((name, value, None));
    }

    /// Adds a field whose value is coloured by its text.
    pub(crate) fn add_painted(&mut self, name: &'static str, value: String, paint: Paint) {
        self.0.push((name, value, Some(paint)));
    }

    /// The fields as text that fits the terminal.
    pub(crate) fn render(&self) -> String {
        self.fitted(columns(), may_color())
    }

    fn fitted(&self, most: Option<usize>, colored: bool) -> String {
        let indent = self.0.iter().map(|(name, ..)| width(name)).max().unwrap_or(0) + GAP;
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(indent).max(LEAST));
        let mut lines = Vec::new();
        for (name, value, paint) in &self.0 {
            let mut parts = text::wrap(&sanitize(value), room).into_iter();
            let first = parts.next().unwrap_or_default();
            let first = match paint.filter(|_| colored) {
                Some(paint) => paint.apply(&first, &first),
                None => first,
            };
            lines.push(format!("{name:indent$}{first}").trim_end().to_owned());
            lines.extend(parts.map(|part| format!("{:indent$}{part}", "")));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_go_on_below_themselves() {
        let mut fields = Fields::default();
        fields.add("id", "1".to_owned());
        fields.add("error", "TIMEOUT: it took longer than 30 s".to_owned());
        assert_eq!(
            fields.fitted(Some(30), false),
            "id     1\nerror  TIMEOUT: it took longer\n       than 30 s"
        );
        assert_eq!(fields.fitted(None, false).lines().count(), 2);
    }
}
