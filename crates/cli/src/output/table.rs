//! Tables that fit the terminal. Ids are never cut, so that they can be copied: less important
//! columns are omitted first, then long texts are shortened.

use super::color::Paint;
use super::text::{self, width};

/// Blanks between two columns.
const GAP: usize = 2;

/// A table in the house style.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

struct Column {
    name: String,
    fit: Fit,
    /// Omitted if there is no room, the lowest first.
    rank: Option<usize>,
    paint: Option<Paint>,
}

/// How a column adapts to a narrow terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It is shown in full.
    Keep,
    /// Its cells are cut, down to this width.
    Shorten(usize),
    /// Its cells are wrapped, down to this width. Only for the last column.
    Wrap(usize),
}

impl Table {
    /// A table with these columns, all of them shown in full.
    pub(crate) fn new(header: &[&str]) -> Self {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            fit: Fit::Keep,
            rank: None,
            paint: None,
        };
        Self { columns: header.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Cuts these columns if the table is too wide, down to `least` each.
    pub(crate) fn shorten(mut self, names: &[&str], least: usize) -> Self {
        names.iter().for_each(|name| self.column(name).fit = Fit::Shorten(least));
        self
    }

    /// Wraps the last column if the table is too wide.
    pub(crate) fn wrap_last(mut self) -> Self {
        let last = self.columns.last_mut().expect("a table has columns");
        last.fit = Fit::Wrap(20);
        self
    }

    /// Omits these columns if the table is too wide, the first of them first.
    pub(crate) fn leave_out(mut self, names: &[&str]) -> Self {
        for (rank, name) in names.iter().enumerate() {
            self.column(name).rank = Some(rank);
        }
        self
    }

    /// Colours the cells of a column by their text.
    pub(crate) fn paint(mut self, name: &str, paint: Paint) -> Self {
        self.column(name).paint = Some(paint);
        self
    }

    fn column(&mut self, name: &str) -> &mut Column {
        let column = self.columns.iter_mut().find(|column| column.name == name);
        column.expect("the table has this column")
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn add_row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| super::sanitize(&cell.into())).collect());
    }

    /// The table as text, no wider than this if possible.
    pub(crate) fn render(&self, most: Option<usize>, colored: bool) -> String {
        let shown = self.layout(most);
        let mut lines = vec![self.line(&shown, |column| self.columns[column].name.to_uppercase())];
        for row in &self.rows {
            lines.extend(self.lines_of(row, &shown, colored));
        }
        lines.join("\n")
    }

    /// The visible columns and their widths.
    fn layout(&self, most: Option<usize>) -> Vec<(usize, usize)> {
        let mut shown: Vec<_> = (0..self.columns.len()).map(|at| (at, self.widest(at))).collect();
        let Some(most) = most else { return shown };
        let natural = shown.clone();
        loop {
            for (at, width) in &mut shown {
                *width = self.narrowest(*at, natural[*at].1);
            }
            if total(&shown) <= most {
                break;
            }
            let least = shown.iter().filter_map(|(at, _)| self.columns[*at].rank).min();
            let Some(least) = least else { break };
            shown.retain(|(at, _)| self.columns[*at].rank != Some(least));
        }
        let mut room = most.saturating_sub(total(&shown));
        for (at, width) in &mut shown {
            let more = (natural[*at].1 - *width).min(room);
            *width += more;
            room -= more;
        }
        shown
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().flat_map(|row| row[column].lines());
        cells.map(width).max().unwrap_or(0).max(width(&self.columns[column].name))
    }

    fn narrowest(&self, column: usize, natural: usize) -> usize {
        match self.columns[column].fit {
            Fit::Keep => natural,
            Fit::Shorten(least) | Fit::Wrap(least) => {
                natural.min(least.max(width(&self.columns[column].name)))
            }
        }
    }

    /// One line without trailing blanks.
    fn line(&self, shown: &[(usize, usize)], cell: impl Fn(usize) -> String) -> String {
        let mut line = String::new();
        for (at, width) in shown {
            line += &padded(&cell(*at), *width);
            line += &" ".repeat(GAP);
        }
        line.trim_end().to_owned()
    }

    fn lines_of(&self, row: &[String], shown: &[(usize, usize)], colored: bool) -> Vec<String> {
        let wraps = |at: usize| matches!(self.columns[at].fit, Fit::Wrap(_));
        let mut more = Vec::new();
        if let Some((at, width)) = shown.last().filter(|(at, _)| wraps(*at)) {
            more = text::wrap(&row[*at], *width);
        }
        let mut more = more.into_iter();
        let mut line = String::new();
        for (at, width) in shown {
            let cell = if wraps(*at) {
                more.next().unwrap_or_default()
            } else {
                text::shorten(row[*at].lines().next().unwrap_or_default(), *width)
            };
            let paint = self.columns[*at].paint.filter(|_| colored);
            let full = padded(&cell, *width);
            line += &paint.map_or(full.clone(), |paint| paint.apply(&cell, &full));
            line += &" ".repeat(GAP);
        }
        let indent = total(shown) - shown.last().map_or(0, |(_, width)| *width);
        let first = line.trim_end().to_owned();
        std::iter::once(first).chain(more.map(|cell| " ".repeat(indent) + &cell)).collect()
    }
}

fn total(shown: &[(usize, usize)]) -> usize {
    shown.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
}

fn padded(cell: &str, to: usize) -> String {
    format!("{cell}{}", " ".repeat(to.saturating_sub(width(cell))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01920000-0000-7000-8000-000000000000";

    fn tasks() -> Table {
        let header = ["id", "type", "queue", "status", "run at", "error"];
        let table = Table::new(&header);
        let mut table = table.shorten(&["type", "queue"], 8).shorten(&["error"], 12);
        table = table.leave_out(&["run at", "queue"]);
        let error = "connection refused by mail.example.com after 30 s";
        table.add_row([ID, "email", "default", "FAILED", "2030-01-31T08:00:00Z", error]);
        table
    }

    #[test]
    fn a_table_with_room_shows_everything() {
        for width in [None, Some(200)] {
            let text = tasks().render(width, false);
            for part in [ID, "RUN AT", "2030-01-31T08:00:00Z", "after 30 s"] {
                assert!(text.contains(part), "{text}");
            }
        }
    }

    #[test]
    fn an_id_is_kept_whole_and_other_columns_make_room() {
        for width in [50, 60, 80, 120] {
            let text = tasks().render(Some(width), false);
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(text.contains(ID), "{width}: {text}");
            if width >= 80 {
                let widest = text.lines().map(super::width).max();
                assert!(widest <= Some(width), "{widest:?}: {text}");
                assert!(text.contains("connection"), "{text}");
            }
        }
        let text = tasks().render(Some(80), false);
        assert!(!text.contains("RUN AT") && text.contains('…'), "{text}");
    }

    #[test]
    fn the_last_column_goes_on_below_itself() {
        let mut table = Table::new(&["check", "detail"]).wrap_last();
        table.add_row(["disk", "a line of text that does not fit\n→ what to do about it"]);
        let text = table.render(Some(30), false);
        assert_eq!(
            text,
            "CHECK  DETAIL\ndisk   a line of text that\n       does not fit\n       → what to do about it"
        );
    }

    #[test]
    fn wide_characters_count_twice() {
        let mut table = Table::new(&["id", "error"]).shorten(&["error"], 5);
        table.add_row(["1", "数据库连接失败"]);
        let text = table.render(Some(11), false);
        assert!(text.lines().all(|line| width(line) <= 11), "{text}");
        assert!(text.contains('…'), "{text}");
    }
}
