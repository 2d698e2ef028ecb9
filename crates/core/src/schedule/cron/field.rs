//! The grammar of one field of a cron expression. The library that evaluates days accepts more than is
//! documented here and explains less, so every field is read strictly before the library sees it.

use std::fmt;

/// Which field of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

impl Kind {
    /// The fields of an expression with seconds, in their order.
    pub(super) const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Weekday];

    /// Its smallest and its largest value. Sunday is 0 and also 7.
    const fn bounds(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// The last value of `*`.
    const fn last_of_all(self) -> u8 {
        match self {
            Self::Weekday => 6,
            Self::Second | Self::Minute | Self::Hour | Self::Day | Self::Month => self.bounds().1,
        }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &[
                "", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV",
                "DEC",
            ],
            Self::Weekday => &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
            Self::Second | Self::Minute | Self::Hour | Self::Day => &[],
        }
    }

    const fn allowed(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => {
                "0 to 59, `*`, ranges `1-5`, lists `1,2` and steps `*/5`"
            }
            Self::Hour => "0 to 23, `*`, ranges `9-17`, lists `8,20` and steps `*/2`",
            Self::Day => {
                "1 to 31, `*`, ranges, lists, steps, `L` (last day), `LW` (last weekday) and `15W` \
                 (nearest weekday)"
            }
            Self::Month => "1 to 12, JAN to DEC, `*`, ranges, lists and steps",
            Self::Weekday => {
                "0 to 7, SUN to SAT, `*`, ranges, lists, steps, `MON#2` (second Monday) and `5L` \
                 (last Friday)"
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of the month",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        })
    }
}

/// One item of the list that a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Every `step`-th value from `first` to `last`; one value, if both are the same.
    Span { first: u8, last: u8, step: u8 },
    /// The last day of the month.
    LastDay,
    /// The last of Monday to Friday in the month.
    LastWorkday,
    /// The workday nearest to a day, within its month.
    Nearest(u8),
    /// A weekday's n-th occurrence in the month.
    Nth(u8, u8),
    /// A weekday's last occurrence in the month.
    LastOf(u8),
}

impl fmt::Display for Item {
    /// As the library reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Span { first, last, .. } if first == last => write!(f, "{first}"),
            Self::Span { first, last, step: 1 } => write!(f, "{first}-{last}"),
            Self::Span { first, last, step } => write!(f, "{first}-{last}/{step}"),
            Self::LastDay => f.write_str("L"),
            Self::LastWorkday => f.write_str("LW"),
            Self::Nearest(day) => write!(f, "{day}W"),
            Self::Nth(weekday, n) => write!(f, "{weekday}#{n}"),
            Self::LastOf(weekday) => write!(f, "{weekday}L"),
        }
    }
}

/// A field whose every item holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) items: Vec<Item>,
    /// It is `*` and nothing else.
    pub(super) is_any: bool,
    /// It says how often, and not when: it has a wildcard or a step.
    pub(super) repeats: bool,
}

impl Field {
    /// The field of an expression that leaves it out.
    pub(super) fn zero() -> Self {
        let items = vec![Item::Span { first: 0, last: 0, step: 1 }];
        Self { items, is_any: false, repeats: false }
    }

    /// Reads a field in upper case; an error says what is wrong with it and what is allowed.
    pub(super) fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        let days = matches!(kind, Kind::Day | Kind::Weekday);
        let text = if days && text == "?" { "*" } else { text };
        let refused = |item: &str, why: &str| {
            let item: String = item.chars().take(20).collect();
            format!("the {kind} field: `{item}` {why}; allowed are {}", kind.allowed())
        };
        let mut items = Vec::new();
        for text in text.split(',') {
            items.push(item(kind, text).map_err(|why| refused(text, &why))?);
        }
        if items.contains(&Item::LastDay) && items.contains(&Item::LastWorkday) {
            return Err(refused(text, "names two last days"));
        }
        Ok(Self { items, is_any: text == "*", repeats: text.contains(['*', '/']) })
    }

    /// The values of its spans, one bit for each.
    pub(super) fn mask(&self) -> u64 {
        let mut mask = 0;
        for item in &self.items {
            if let Item::Span { first, last, step } = *item {
                let values = (first..=last).step_by(step.into());
                mask = values.fold(mask, |mask, value| mask | 1 << value);
            }
        }
        mask
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any {
            return f.write_str("*");
        }
        let items: Vec<_> = self.items.iter().map(Item::to_string).collect();
        f.write_str(&items.join(","))
    }
}

fn item(kind: Kind, text: &str) -> Result<Item, String> {
    match kind {
        Kind::Day if text == "L" => return Ok(Item::LastDay),
        Kind::Day if text == "LW" => return Ok(Item::LastWorkday),
        Kind::Day => {
            if let Some(day) = text.strip_suffix('W') {
                return Ok(Item::Nearest(value(kind, day)?));
            }
        }
        Kind::Weekday => {
            if let Some(weekday) = text.strip_suffix("#L").or_else(|| text.strip_suffix('L')) {
                return Ok(Item::LastOf(value(kind, weekday)? % 7));
            }
            if let Some((weekday, n)) = text.split_once('#') {
                let n = number(n).filter(|n| (1..=5).contains(n));
                let n = n.ok_or("needs a number from 1 to 5 after `#`")?;
                return Ok(Item::Nth(value(kind, weekday)? % 7, n));
            }
        }
        Kind::Second | Kind::Minute | Kind::Hour | Kind::Month => {}
    }
    span(kind, text)
}

fn span(kind: Kind, text: &str) -> Result<Item, String> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let (least, most) = kind.bounds();
    let (first, last) = if range == "*" {
        (least, kind.last_of_all())
    } else if let Some((first, last)) = range.split_once('-') {
        (value(kind, first)?, value(kind, last)?)
    } else {
        let only = value(kind, range)?;
        (only, only)
    };
    // `FRI-SUN`: Sunday after a `-` is 7.
    let last = if kind == Kind::Weekday && last == 0 && range.contains('-') { 7 } else { last };
    if first > last {
        return Err(format!("runs backwards: write `{first}-{most},{least}-{last}`"));
    }
    let Some(step) = step else { return Ok(Item::Span { first, last, step: 1 }) };
    if first == last {
        return Err(format!(
            "needs a range before `/`, such as `{first}-{most}/{step}` or `*/{step}`"
        ));
    }
    let fits = number(step).filter(|step| (1..=most).contains(step));
    let step = fits.ok_or_else(|| format!("needs a step from 1 to {most} after `/`"))?;
    Ok(Item::Span { first, last, step })
}

/// A number or a name.
fn value(kind: Kind, text: &str) -> Result<u8, String> {
    let named = kind.names().iter().position(|name| *name == text && !name.is_empty());
    if let Some(value) = named.and_then(|at| u8::try_from(at).ok()) {
        return Ok(value);
    }
    let (least, most) = kind.bounds();
    let number = number(text).ok_or("cannot be read")?;
    let fits = (least..=most).contains(&number);
    if fits { Ok(number) } else { Err(format!("is outside {least} to {most}")) }
}

/// At most two digits, and nothing else.
fn number(text: &str) -> Option<u8> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
