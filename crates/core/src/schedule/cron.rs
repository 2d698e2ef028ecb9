//! Cron expressions: five fields, or six with seconds in front, or a nickname such as `@daily`.
//!
//! A day matches if the day of the month *or* the day of the week does, and only by the other field
//! where one of them is `*`.

mod days;
mod describe;
mod field;
mod local;

use croner::parser::{CronParser, Seconds, Year};

use self::days::Days;
use self::field::{Field, Kind};
use crate::limits::CRON_CHARS;

/// A cron expression that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    seconds: u64,
    minutes: u64,
    hours: u32,
    months: u16,
    days: Days,
    repeats: bool,
}

/// Expressions with a name.
const NICKNAMES: [(&str, &str); 7] = [
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

impl Cron {
    /// Reads an expression; an error says which field is wrong and what it may hold.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_ascii();
        let [second, minute, hour, day, month, weekday] = fields(text)?;
        // The library judges days only, so it is given nothing else.
        let given = format!("0 0 0 {day} * {weekday}");
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed);
        let parsed = parser.build().parse(&given).map_err(|bad| bad.to_string())?;
        Ok(Self {
            text: text.to_owned(),
            seconds: second.mask(),
            minutes: minute.mask(),
            hours: u32::try_from(hour.mask()).expect("hours end at 23"),
            months: u16::try_from(month.mask()).expect("months end at 12"),
            days: Days::of(&parsed.pattern),
            repeats: second.repeats || minute.repeats || hour.repeats,
        })
    }

    /// The expression, as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the times of day are given by a wildcard or a step, and not one by one. Such an
    /// expression goes on in an hour that is repeated.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// What it means, in plain English.
    pub fn describe(&self) -> String {
        describe::describe(&fields(&self.text).expect("was read before"))
    }
}

/// The six fields of an expression.
fn fields(text: &str) -> Result<[Field; 6], String> {
    if text.len() > CRON_CHARS {
        return Err(format!("is {} bytes long; the limit is {CRON_CHARS}", text.len()));
    }
    let text = text.to_ascii_uppercase();
    let words: Vec<&str> = expand(&text)?.split_ascii_whitespace().collect();
    let (words, kinds) = match words.len() {
        5 => (words, &Kind::ALL[1..]),
        6 => (words, &Kind::ALL[..]),
        count => {
            let wanted = "minute, hour, day of the month, month, day of the week";
            return Err(format!(
                "has {count} fields; 5 are needed ({wanted}), or 6 with seconds \
                                in front"
            ));
        }
    };
    let mut fields = Vec::with_capacity(6);
    if words.len() == 5 {
        fields.push(Field::zero());
    }
    for (kind, word) in kinds.iter().zip(words) {
        fields.push(Field::parse(*kind, word)?);
    }
    Ok(fields.try_into().expect("five and one, or six"))
}

fn expand(text: &str) -> Result<&str, String> {
    if !text.starts_with('@') {
        return Ok(text);
    }
    let known = NICKNAMES.iter().find(|(name, _)| *name == text);
    known.map(|(_, expression)| *expression).ok_or_else(|| {
        let names: Vec<_> = NICKNAMES.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        format!("is no nickname that a schedule can have: those are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests;
