//! Values of PostgreSQL as JSON text, from the binary form in which they come.

use jiff::civil::{DateTime, date};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::types::{FromSql, Kind, Type};

use crate::sql::SqlError;
use crate::sql::parameter::base64;
use crate::sql::rows::string;

/// A value as JSON text.
pub(super) struct Json(pub(super) String);

/// A value that has no form in JSON.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(String);

type Boxed = Box<dyn std::error::Error + Sync + Send>;
type Read<T> = Result<T, Boxed>;

impl Unreadable {
    /// For a parameter.
    pub(super) fn base64() -> Boxed {
        Box::new(Self("a parameter of the type bytea must be a string in base64".to_owned()))
    }

    fn because(why: impl Into<String>) -> Boxed {
        Box::new(Self(why.into()))
    }
}

/// Checks whether the values of a column can be read.
pub(super) fn check(column: &str, of: &Type) -> Result<(), SqlError> {
    if is_readable(of) {
        return Ok(());
    }
    Err(SqlError::Type(format!(
        "the column `{column}` has the type {}, which has no form in JSON; cast it to text: {column}::text",
        of.name()
    )))
}

const PLAIN: [Type; 23] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::OID,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::NUMERIC,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
    Type::UNKNOWN,
    Type::UUID,
    Type::JSON,
    Type::JSONB,
    Type::BYTEA,
    Type::DATE,
    Type::TIME,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::XML,
    Type::VOID,
];

fn is_readable(of: &Type) -> bool {
    match of.kind() {
        Kind::Array(item) => is_readable(item),
        Kind::Domain(inner) => is_readable(inner),
        Kind::Enum(_) => true,
        _ => PLAIN.contains(of),
    }
}

impl<'a> FromSql<'a> for Json {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Read<Self> {
        read(of, raw).map(Self)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn read(of: &Type, raw: &[u8]) -> Read<String> {
    match of.kind() {
        Kind::Array(_) => {
            let items = Vec::<Option<Json>>::from_sql(of, raw).map_err(|_| {
                Unreadable::because(
                    "an array has more than one dimension; cast it to json: to_json(x)",
                )
            })?;
            let items = items.into_iter().map(|item| item.map_or("null".to_owned(), |item| item.0));
            return Ok(format!("[{}]", items.collect::<Vec<_>>().join(",")));
        }
        Kind::Domain(inner) => return read(inner, raw),
        Kind::Enum(_) => return text(raw),
        _ => {}
    }
    Ok(match *of {
        Type::BOOL => bool::from_sql(of, raw)?.to_string(),
        Type::INT2 => i16::from_sql(of, raw)?.to_string(),
        Type::INT4 => i32::from_sql(of, raw)?.to_string(),
        Type::INT8 => i64::from_sql(of, raw)?.to_string(),
        Type::OID => u32::from_sql(of, raw)?.to_string(),
        Type::FLOAT4 => float(f32::from_sql(of, raw)?),
        Type::FLOAT8 => float(f64::from_sql(of, raw)?),
        Type::NUMERIC => string(&numeric(raw).ok_or_else(|| Unreadable::because("a bad numeric"))?),
        Type::JSON => std::str::from_utf8(raw)?.trim().to_owned(),
        // One byte says which version of the binary form follows.
        Type::JSONB => std::str::from_utf8(raw.get(1..).unwrap_or_default())?.to_owned(),
        Type::BYTEA => base64(raw),
        Type::UUID => string(&uuid(raw)),
        Type::VOID => "null".to_owned(),
        Type::DATE | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => string(&instant(of, raw)?),
        _ => text(raw)?,
    })
}

fn text(raw: &[u8]) -> Read<String> {
    Ok(string(std::str::from_utf8(raw)?))
}

/// JSON has no numbers for what is none.
fn float<T: Into<f64> + serde::Serialize + Copy>(number: T) -> String {
    let wide: f64 = number.into();
    if wide.is_finite() {
        return serde_json::to_string(&number).expect("a number");
    }
    string(if wide.is_nan() {
        "NaN"
    } else if wide > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    })
}

fn uuid(raw: &[u8]) -> String {
    let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or(""));
    parts.join("-")
}

/// Dates and times in RFC 3339; those without a zone stay without one.
fn instant(of: &Type, raw: &[u8]) -> Read<String> {
    let epoch: DateTime = date(2000, 1, 1).at(0, 0, 0, 0);
    let too_far = || {
        Unreadable::because(
            "a date is outside of the years -9999 to 9999; cast it to text: x::text",
        )
    };
    if *of == Type::DATE {
        let days = i32::from_be_bytes(raw.try_into()?);
        return Ok(match days {
            i32::MAX => "infinity".to_owned(),
            i32::MIN => "-infinity".to_owned(),
            _ => {
                let since = SignedDuration::from_hours(i64::from(days) * 24);
                epoch.checked_add(since).map_err(|_| too_far())?.date().to_string()
            }
        });
    }
    let micros = i64::from_be_bytes(raw.try_into()?);
    let at = || epoch.checked_add(SignedDuration::from_micros(micros)).map_err(|_| too_far());
    Ok(match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        86_400_000_000 if *of == Type::TIME => "24:00:00".to_owned(),
        _ if *of == Type::TIME => at()?.time().to_string(),
        _ if *of == Type::TIMESTAMP => at()?.to_string(),
        _ => {
            let since = micros.checked_add(EPOCH_MICROS).ok_or_else(too_far)?;
            Timestamp::from_microsecond(since).map_err(|_| too_far())?.to_string()
        }
    })
}

/// Microseconds from 1970 to 2000, where PostgreSQL begins to count.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A decimal number with all its digits: groups of four, the weight of the first, the sign, and how many
/// digits stand behind the point.
fn numeric(raw: &[u8]) -> Option<String> {
    let words: Vec<u16> =
        raw.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let (&[count, weight, sign, scale], groups) = words.split_first_chunk::<4>()?;
    match sign {
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let weight = i32::from(weight.cast_signed());
    let group = |power: i32| {
        let index = usize::try_from(weight - power).ok();
        index.and_then(|index| groups.get(index)).filter(|_| count > 0).copied().unwrap_or(0)
    };
    let whole: String =
        (0..=weight.max(0)).rev().map(|power| format!("{:04}", group(power))).collect();
    let whole = whole.trim_start_matches('0');
    let mut text = if sign == 0x4000 { "-".to_owned() } else { String::new() };
    text.push_str(if whole.is_empty() { "0" } else { whole });
    let scale = usize::from(scale);
    if scale > 0 {
        let last = i32::try_from(scale.div_ceil(4)).ok()?;
        let fraction: String = (1..=last).map(|at| format!("{:04}", group(-at))).collect();
        text.push('.');
        text.push_str(fraction.get(..scale)?);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(words: &[u16]) -> Option<String> {
        numeric(&words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn decimals_keep_every_digit() {
        for (words, text) in [
            (&[0, 0, 0, 0][..], "0"),
            (&[0, 0, 0, 2], "0.00"),
            (&[1, 0, 0, 0, 7], "7"),
            (&[2, 1, 0, 0, 1, 2], "10002"),
            (&[1, 1, 0, 0, 12], "120000"),
            (&[2, 0, 0x4000, 3, 1, 5000], "-1.500"),
            (&[1, 0xFFFF, 0, 4, 1], "0.0001"),
            (&[1, 0xFFFE, 0, 6, 1200], "0.000012"),
            (&[0, 0, 0xC000, 0], "NaN"),
        ] {
            assert_eq!(number(words).as_deref(), Some(text), "{words:?}");
        }
        assert_eq!(number(&[1, 2]), None);
    }

    #[test]
    fn types_without_a_form_in_json_are_named() {
        let why = check("age", &Type::INTERVAL).unwrap_err().to_string();
        assert!(
            why.contains("`age`") && why.contains("interval") && why.contains("age::text"),
            "{why}"
        );
        assert!(check("a", &Type::INT8_ARRAY).is_ok());
        assert!(check("a", &Type::POINT_ARRAY).is_err());
    }
}
