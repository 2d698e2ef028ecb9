//! The descriptions of the built-in task types as data, printed by `duly handler` and
//! docs/handlers.md. Each is next to its handler.

mod page;

use serde::Serialize;
use serde_json::value::RawValue;

pub use self::page::page;
use super::{echo, email, flaky, http, map, samples, shell, sleep, sql};

/// The description of one task type.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The name of the type.
    pub r#type: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The flag, or the key of the configuration file, without which `duly serve` does not run tasks of
    /// this type.
    pub flag: Option<&'static str>,
    /// Further paragraphs.
    pub notes: &'static [&'static str],
    /// The fields of the payload; none if any JSON will do.
    pub payload: &'static [PayloadField],
    /// The fields of the result; none if it has no fixed form.
    pub result: &'static [ResultField],
    /// The errors of this type, in addition to [`COMMON_ERRORS`].
    pub errors: &'static [ErrorCode],
    /// Payloads to try, with their outcomes.
    pub examples: &'static [Example],
}

/// A field of a payload.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PayloadField {
    /// Its name.
    pub name: &'static str,
    /// Its JSON type, possibly with bounds.
    pub r#type: &'static str,
    /// The value if it is absent. A field without a default is required.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// A field of a result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ResultField {
    /// Its name.
    pub name: &'static str,
    /// Its JSON type.
    pub r#type: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// An error that ends an attempt.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ErrorCode {
    /// The code.
    pub code: &'static str,
    /// Whether the task is tried again while it has retries left.
    pub retried: Retried,
    /// When it happens.
    pub meaning: &'static str,
}

/// Whether another attempt follows an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Retried {
    /// While retries are left.
    Yes,
    /// Never: the task fails at once.
    No,
    /// As the error's meaning says.
    Sometimes,
}

impl Retried {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Sometimes => "sometimes",
        }
    }
}

/// A payload and its outcome on a fresh `duly dev` with the type's flag.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Example {
    /// What it shows.
    pub title: &'static str,
    /// The payload as JSON text.
    #[serde(serialize_with = "as_json")]
    pub payload: &'static str,
    /// Its outcome.
    pub outcome: Outcome,
}

/// How an example ends.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It succeeds with a result like this, as JSON text. Times, counts and texts may differ.
    #[serde(serialize_with = "as_json")]
    Result(&'static str),
    /// It fails with this code.
    Error(&'static str),
}

/// Serializes JSON text as the value it holds.
fn as_json<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let value: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
    value.serialize(serializer)
}

/// Errors of every type.
pub const COMMON_ERRORS: &[ErrorCode] = &[
    ErrorCode {
        code: "INVALID_PAYLOAD",
        retried: Retried::No,
        meaning: "The payload is not what the type takes: a field is missing, unknown, of another \
                  JSON type or out of range. The message names it.",
    },
    ErrorCode {
        code: "TIMEOUT",
        retried: Retried::Yes,
        meaning: "The attempt took longer than the task's `timeoutSeconds` (default: 30 min).",
    },
    ErrorCode {
        code: "RESULT_TOO_LARGE",
        retried: Retried::No,
        meaning: "The result exceeds 1 MiB.",
    },
    ErrorCode {
        code: "WORKER_LOST",
        retried: Retried::No,
        meaning: "Workers died while they ran the task, as often as `lossLimit` allows \
                  (default: 10). Up to then the task runs again, and no attempt is charged.",
    },
];

/// The built-in types: those that every worker runs, then those that need something.
pub const REFERENCES: &[Reference] = &[
    echo::REFERENCE,
    flaky::REFERENCE,
    http::REFERENCE,
    map::REFERENCE,
    sleep::REFERENCE,
    email::REFERENCE,
    sql::REFERENCE,
    shell::REFERENCE,
    samples::CLEANUP_TEMP_FILES,
    samples::DAILY_REPORT,
    samples::DATA_BACKUP,
];

#[cfg(test)]
mod tests;
