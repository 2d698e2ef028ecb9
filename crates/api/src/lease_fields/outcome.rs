//! One outcome of a finish.

use std::sync::Arc;
use std::time::Duration;

use duly_client::wire::OutcomeKind;
use duly_core::json::{self, BadJson};
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::{BACK_OFF, COUNT, RESULT_BYTES, RUN_AHEAD};
use duly_core::log::{self, LogChunk};
use duly_core::ports::random::Random;
use duly_core::task::Failure;
use serde_json::value::RawValue;

use super::report::last_progress;
use super::{required_epoch, required_id};
use crate::fields::{Fields, Place};

/// Characters of an error's code.
const CODE_CHARS: usize = 64;
/// The fields of an outcome.
const NAMES: [&str; 10] = [
    "taskId",
    "epoch",
    "outcome",
    "result",
    "error",
    "afterSeconds",
    "elapsedSeconds",
    "progress",
    "log",
    "logOffset",
];

/// `{taskId, epoch, outcome, result?, error?, afterSeconds?, elapsedSeconds?, progress?, log?,
/// logOffset?}`
pub(super) fn read(
    fields: &mut Fields,
    value: &RawValue,
    at: Place<'_>,
    random: &dyn Random,
) -> Option<Finish> {
    let [task, epoch, kind, result, error, after, elapsed, progress, log, offset] =
        fields.object(value, at, NAMES)?;
    let task = required_id(fields, task, at.field("taskId"));
    let epoch = required_epoch(fields, epoch, at.field("epoch"));
    let kind = read_kind(fields, kind, at.field("outcome"));
    if let Some(kind) = kind {
        let is_failure = matches!(kind, OutcomeKind::Retry | OutcomeKind::Fail);
        let mut only = |goes: bool, value: Option<&RawValue>, name, with| {
            if value.is_some() && !goes {
                let detail = format!("goes only with {with}");
                fields.refuse(at.field(name), "CONFLICTING_FIELDS", detail);
            }
        };
        only(kind == OutcomeKind::Success, result, "result", "success");
        only(is_failure, error, "error", "retry and fail");
        only(kind == OutcomeKind::Retry, after, "afterSeconds", "retry");
        if is_failure {
            fields.required(error, at.field("error"));
        }
    }
    let here = at.field("result");
    let result = result
        .and_then(|result| checked_json(fields, result, here, (RESULT_BYTES, "RESULT_TOO_LARGE")));
    let error = error.and_then(|error| read_error(fields, error, at.field("error")));
    let after = fields.seconds(after, at.field("afterSeconds"), BACK_OFF);
    let ran = fields.seconds(elapsed, at.field("elapsedSeconds"), RUN_AHEAD);
    let progress = progress.and_then(|value| last_progress(fields, value, at.field("progress")));
    let offset = fields.whole(offset, at.field("logOffset"), 0..=COUNT).unwrap_or(0);
    let log = fields.string(log, at.field("log"));
    let log = log.map(|text| LogChunk { offset, text: log::plain(&text).into() });
    let outcome = outcome(kind?, result, error, after, random)?;
    Some(Finish { task: task?, epoch: epoch?, outcome, ran, progress, log })
}

fn outcome(
    kind: OutcomeKind,
    result: Option<Arc<str>>,
    error: Option<Failure>,
    after: Option<Duration>,
    random: &dyn Random,
) -> Option<Outcome> {
    Some(match kind {
        OutcomeKind::Success => Outcome::Success { result },
        OutcomeKind::Retry => Outcome::Retry { error: error?, entropy: random.next(), after },
        OutcomeKind::Fail => Outcome::Fail { error: error? },
        OutcomeKind::Release => Outcome::Release,
    })
}

fn read_kind(fields: &mut Fields, value: Option<&RawValue>, at: Place<'_>) -> Option<OutcomeKind> {
    let value = fields.required(value, at)?;
    let text = fields.string(Some(value), at)?;
    match text.as_str() {
        "success" => Some(OutcomeKind::Success),
        "retry" => Some(OutcomeKind::Retry),
        "fail" => Some(OutcomeKind::Fail),
        "release" => Some(OutcomeKind::Release),
        _ => {
            fields.refuse(at, "UNKNOWN_WORD", "must be success, retry, fail or release");
            None
        }
    }
}

/// Any JSON of at most so many bytes, kept as it is spelled; more is refused with this code.
pub(super) fn checked_json(
    fields: &mut Fields,
    value: &RawValue,
    at: Place<'_>,
    (most, too_large): (usize, &'static str),
) -> Option<Arc<str>> {
    let text = value.get();
    if text.len() > most {
        let detail = format!("is {} bytes; the limit is {most}", text.len());
        fields.refuse(at, too_large, detail);
        return None;
    }
    if let Err(bad) = json::check(text) {
        let code = match bad {
            BadJson::TooDeep => "TOO_DEEP",
            BadJson::Nul => "NUL_CHARACTER",
            BadJson::HalfCharacter => "INVALID_UNICODE",
        };
        fields.refuse(at, code, bad.to_string());
        return None;
    }
    Some(text.into())
}

/// `{code, message}`
fn read_error(fields: &mut Fields, value: &RawValue, at: Place<'_>) -> Option<Failure> {
    let [code, message] = fields.object(value, at, ["code", "message"])?;
    let here = at.field("code");
    let code = fields.required(code, here);
    let code = fields.string(code, here);
    if code.as_deref().is_some_and(|code| !is_code(code)) {
        fields.refuse(here, "INVALID_CODE", "must match [A-Z][A-Z0-9_]{0,63}");
    }
    let here = at.field("message");
    let message = fields.required(message, here);
    let message = fields.string(message, here);
    Some(Failure::new(&code?, plain(message?)))
}

fn is_code(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let first = text.bytes().next().is_some_and(|first| first.is_ascii_uppercase());
    first && text.bytes().all(rest) && text.len() <= CODE_CHARS
}

/// Text for people: what databases refuse is replaced, since no outcome may be lost for it.
pub(super) fn plain(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
