//! Places among the stored events. A view is what one snapshot of the server sees. A place is a view from
//! which everything was received, and perhaps a step to the next view that was received in part.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use duly_core::event::Position;
use duly_core::time::Timestamp;
use tokio_postgres::Row;

use crate::postgres::error::Result;
use crate::postgres::row;

/// Transactions that a snapshot may name: far more than a server has open.
const MOST_OPEN: usize = 100_000;

/// Which transactions had ended at a moment, as the server writes it: `xmin:xmax:open,open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct Snapshot {
    xmin: u64,
    /// From this one on, all are unknown.
    xmax: u64,
    /// Below it, these were open. They are sorted.
    open: Vec<u64>,
}

impl Snapshot {
    /// Whether another snapshot sees all that this one sees. Of two of one server, one is the later.
    fn is_within(&self, other: &Self) -> bool {
        let is_open = |id: &u64| self.open.binary_search(id).is_ok();
        self.xmax <= other.xmax && other.open.iter().filter(|id| **id < self.xmax).all(is_open)
    }

    /// Those below that were open, as texts.
    pub(in crate::postgres) fn open(&self) -> Vec<String> {
        self.open.iter().map(u64::to_string).collect()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (number, id) in self.open.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{id}")?;
        }
        Ok(())
    }
}

/// The text is none that a server writes.
#[derive(Debug)]
pub(in crate::postgres) struct NotAView;

impl FromStr for Snapshot {
    type Err = NotAView;

    fn from_str(text: &str) -> std::result::Result<Self, NotAView> {
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or(NotAView);
        let (xmin, xmax) = (number(next()?)?, number(next()?)?);
        let open = next()?.split(',').filter(|id| !id.is_empty()).take(MOST_OPEN).map(number);
        let open = open.collect::<std::result::Result<Vec<u64>, _>>()?;
        let is_sound = (1..=xmax).contains(&xmin)
            && open.is_sorted()
            && open.iter().all(|id| (xmin..xmax).contains(id))
            && parts.next().is_none();
        if is_sound { Ok(Self { xmin, xmax, open }) } else { Err(NotAView) }
    }
}

fn number<T: FromStr>(text: &str) -> std::result::Result<T, NotAView> {
    text.parse().map_err(|_| NotAView)
}

/// What is to be seen at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct View {
    pub(in crate::postgres) seen: Snapshot,
    /// A transaction that the snapshot does not know gets higher numbers for its rows.
    pub(in crate::postgres) low: i64,
    /// No row that the snapshot sees has a higher number.
    pub(in crate::postgres) high: i64,
    pub(in crate::postgres) at: Timestamp,
}

/// Everything up to here was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::postgres) struct Place {
    pub(in crate::postgres) from: View,
    /// The end of the step that was received up to the row `number`.
    pub(in crate::postgres) to: Option<View>,
    pub(in crate::postgres) number: i64,
    /// The event within the row, from 1; 0 stands for all of the row.
    pub(in crate::postgres) index: u32,
}

/// The columns of a place in duly.sink.
pub(in crate::postgres) const COLUMNS: &str = "seen::text, low, high, seen_at, next_seen::text, next_low, next_high, \
    next_at, number, index";

impl Place {
    /// A place between two steps.
    pub(in crate::postgres) fn at(view: View) -> Self {
        Self { from: view, to: None, number: 0, index: 0 }
    }

    /// Reads [`COLUMNS`], which begin at this one.
    pub(in crate::postgres) fn read(found: &Row, first: usize) -> Result<Self> {
        let from = view(found, first)?.expect("these columns are never null");
        let (to, number) = (view(found, first + 4)?, found.try_get(first + 8)?);
        Ok(Self { from, to, number, index: found.try_get::<_, i32>(first + 9)?.unsigned_abs() })
    }

    /// What [`crate::planted::PlantedBug::EventsByNumber`] takes for this place.
    pub(in crate::postgres) fn by_number(&self) -> Self {
        let seen = Snapshot { xmin: 1, xmax: 1, open: Vec::new() };
        let from = View { seen, low: self.from.high, ..self.from.clone() };
        Self { from, ..self.clone() }
    }

    /// The last row that was received wholly.
    pub(in crate::postgres) fn whole(&self) -> i64 {
        self.number - i64::from(self.index > 0)
    }

    /// Whether everything was received here that was received there. In doubt it was not.
    pub(in crate::postgres) fn covers(&self, other: &Self) -> bool {
        let sees = |view: &View, up_to: i64| {
            let by_step = |to: &View| view.seen.is_within(&to.seen) && up_to <= self.whole();
            view.seen.is_within(&self.from.seen) || self.to.as_ref().is_some_and(by_step)
        };
        let is_same = |to: &View| {
            let order = |it: &Self| (it.whole(), if it.index == 0 { u32::MAX } else { it.index });
            self.to.as_ref() == Some(to) && self.from == other.from && order(other) <= order(self)
        };
        let received = |to: &View| sees(to, other.number) || is_same(to);
        let first = self.from == other.from || sees(&other.from, other.from.high);
        first && other.to.as_ref().is_none_or(received)
    }

    /// Whether it lies beyond all that a store has: it is of another one.
    pub(in crate::postgres) fn is_beyond(&self, xmax: u64, newest: i64) -> bool {
        let view = self.to.as_ref().unwrap_or(&self.from);
        view.seen.xmax.max(self.from.seen.xmax) > xmax || self.number > newest
    }

    /// What [`Position::view`] says.
    pub(in crate::postgres) fn view(&self) -> Arc<str> {
        let View { seen, low, high, .. } = &self.from;
        let mut text = format!("{seen}~{low}~{high}");
        if let Some(View { seen, low, high, at }) = &self.to {
            text.push_str(&format!("~{seen}~{low}~{high}~{}", at.millis()));
        }
        text.into()
    }

    pub(in crate::postgres) fn position(&self) -> Position {
        let number = self.number.unsigned_abs();
        Position { view: self.view(), at: self.from.at, number, index: self.index }
    }

    /// The place of a position, if it can be one of this store.
    pub(in crate::postgres) fn of(position: &Position) -> Option<Self> {
        let parts: Vec<_> = position.view.split('~').collect();
        let view = |parts: &[&str], at| {
            let [seen, low, high] = parts else { return None };
            let (seen, low) = (seen.parse().ok()?, low.parse().ok()?);
            Some(View { seen, low, high: high.parse().ok()?, at })
        };
        let (from, to) = match parts.len() {
            3 => (view(&parts, position.at)?, None),
            7 => {
                let at = row::instant(parts[6].parse().ok()?);
                (view(&parts[..3], position.at)?, Some(view(&parts[3..6], at)?))
            }
            _ => return None,
        };
        let number = i64::try_from(position.number).ok()?;
        let is_sound = to.as_ref().map_or(number == 0, |to| from.seen.is_within(&to.seen));
        is_sound.then_some(Self { from, to, number, index: position.index })
    }
}

fn view(found: &Row, first: usize) -> Result<Option<View>> {
    let Some(seen) = found.try_get::<_, Option<&str>>(first)? else { return Ok(None) };
    let seen = seen.parse().expect("the server writes what it accepts");
    let (low, high) = (found.try_get(first + 1)?, found.try_get(first + 2)?);
    Ok(Some(View { seen, low, high, at: row::instant(found.try_get(first + 3)?) }))
}

#[cfg(test)]
mod tests;
