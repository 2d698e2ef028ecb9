//! The grammar of RFC 3339 and nothing beyond it. A library that reads more would have callers
//! depend on it, and jiff's instants end a day before the year 9999 does.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::DateTime;

const MINUTE_MILLIS: i64 = 60 * 1000;
const DAY_MILLIS: i64 = 24 * 60 * MINUTE_MILLIS;

fn epoch() -> DateTime {
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0)
}

/// Milliseconds since 1970, rounded up. Nothing if the text is no instant.
pub(super) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (date_time, rest) = bytes.split_at_checked("0000-00-00T00:00:00".len())?;
    let (second, is_leap) = match number(&date_time[17..])? {
        60 => (59, true),
        second => (second, false),
    };
    let local = DateTime::new(
        i16::try_from(number(&date_time[..4])?).ok()?,
        part(date_time, 5)?,
        part(date_time, 8)?,
        part(date_time, 11)?,
        part(date_time, 14)?,
        i8::try_from(second).ok()?,
        0,
    );
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let marked = |(at, mark): (usize, u8)| date_time[at].to_ascii_uppercase() == mark;
    marks.into_iter().all(marked).then_some(())?;
    let (fraction, offset) = fraction(rest)?;
    let millis = i64::try_from(local.ok()?.duration_since(epoch()).as_millis()).ok()?;
    let instant = millis - offset_millis(offset)?;
    if !is_leap {
        return Some(instant + fraction);
    }
    // A leap second ends a day, and the next second is the next day's first.
    let next = instant + 1000;
    (next.rem_euclid(DAY_MILLIS) == 0).then_some(next + fraction)
}

/// Writes milliseconds since 1970 that lie before the year 10000.
pub(super) fn write(millis: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let it = epoch().saturating_add(SignedDuration::from_millis(millis));
    let (year, month, day) = (it.year(), it.month(), it.day());
    let (hour, minute, second, millis) = (it.hour(), it.minute(), it.second(), it.millisecond());
    write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// A number of digits only.
fn number(digits: &[u8]) -> Option<i64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    digits.iter().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))
}

/// Two digits that begin at a place.
fn part(text: &[u8], at: usize) -> Option<i8> {
    i8::try_from(number(text.get(at..at + 2)?)?).ok()
}

/// The milliseconds of a fraction, rounded up, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = digits.split_at(length);
    let (whole, beyond) = digits.split_at(length.min(3));
    let scale = [0, 100, 10, 1].into_iter().nth(whole.len()).filter(|scale| *scale > 0)?;
    let rounded = i64::from(beyond.iter().any(|digit| *digit != b'0'));
    Some((number(whole)? * scale + rounded, rest))
}

/// How far a zone is ahead of UTC.
fn offset_millis(text: &[u8]) -> Option<i64> {
    let sign = match text {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let (hours, minutes) = (part(text, 1)?, part(text, 4)?);
    let fits = text.len() == 6 && text[3] == b':' && hours < 24 && minutes < 60;
    fits.then(|| sign * (i64::from(hours) * 60 + i64::from(minutes)) * MINUTE_MILLIS)
}
