//! One outcome of a finish.

use std::sync::Arc;
use std::time::Duration;

use duly_client::wire::{LastProgress, OutcomeKind, OutcomeView, TaskError};
use duly_core::json::{self, BadJson};
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::{BACK_OFF, COUNT, RESULT_BYTES, RUN_AHEAD};
use duly_core::log::{self, LogChunk};
use duly_core::name::TenantName;
use duly_core::ports::random::Random;
use duly_core::task::Failure;
use duly_core::workflow::request::Added;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as BadWord;

use super::report::progress_of;
use super::{required_epoch, required_id};
use crate::fields::{Field, Fields, Object};
use crate::workflow_fields;

/// Characters of an error's code.
const CODE_CHARS: usize = 64;

/// Reads an [`OutcomeView`].
pub(super) fn read(
    fields: &mut Fields,
    item: Field<'_, '_>,
    tenant: &TenantName,
    random: &dyn Random,
) -> Option<Finish> {
    let object = fields.object::<OutcomeView>(item)?;
    let task = required_id(fields, object.field("taskId"));
    let epoch = required_epoch(fields, object.field("epoch"));
    let kind = read_kind(fields, object.field("outcome"));
    if let Some(kind) = kind {
        check_kind(fields, &object, kind);
    }
    let result = checked_json(fields, object.field("result"), (RESULT_BYTES, "RESULT_TOO_LARGE"));
    let error = read_error(fields, object.field("error"));
    let after = fields.seconds(object.field("afterSeconds"), BACK_OFF);
    let ran = fields.seconds(object.field("elapsedSeconds"), RUN_AHEAD);
    let progress = fields.object::<LastProgress>(object.field("progress"));
    let progress = progress.and_then(|object| progress_of(fields, &object));
    let offset = fields.whole(object.field("logOffset"), 0..=COUNT).unwrap_or(0);
    let log = fields.string(object.field("log"));
    let log = log.map(|text| LogChunk { offset, text: log::plain(&text).into() });
    let added = workflow_fields::then(fields, object.field("then"));
    let added = added.map(|members| Arc::new(Added { tenant: tenant.clone(), members }));
    let outcome = outcome(kind?, result, error, after, random)?;
    let finish = Finish::new(task?, epoch?, outcome);
    Some(Finish { ran, progress, log, added, ..finish })
}

/// Some fields go only with some kinds of outcomes.
fn check_kind(fields: &mut Fields, object: &Object<'_, '_>, kind: OutcomeKind) {
    let is_failure = matches!(kind, OutcomeKind::Retry | OutcomeKind::Fail);
    for (name, is_allowed, with) in [
        ("result", kind == OutcomeKind::Success, "success"),
        ("then", kind == OutcomeKind::Success, "success"),
        ("error", is_failure, "retry and fail"),
        ("afterSeconds", kind == OutcomeKind::Retry, "retry"),
    ] {
        let field = object.field(name);
        if field.is_given() && !is_allowed {
            fields.refuse(field.at, "CONFLICTING_FIELDS", format!("goes only with {with}"));
        }
    }
    if is_failure {
        fields.required(object.field("error"));
    }
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

fn read_kind(fields: &mut Fields, field: Field<'_, '_>) -> Option<OutcomeKind> {
    let field = fields.required(field);
    let text = fields.string(field)?;
    let kind: Result<_, BadWord> = OutcomeKind::deserialize(text.into_deserializer());
    kind.map_err(|_| {
        fields.refuse(field.at, "UNKNOWN_WORD", "must be success, retry, fail or release");
    })
    .ok()
}

/// Any JSON of at most so many bytes, kept as it is spelled; more is refused with this code.
pub(super) fn checked_json(
    fields: &mut Fields,
    field: Field<'_, '_>,
    (most, too_large): (usize, &'static str),
) -> Option<Arc<str>> {
    let text = field.value?.get();
    if text.len() > most {
        let detail = format!("is {} bytes; the limit is {most}", text.len());
        fields.refuse(field.at, too_large, detail);
        return None;
    }
    if let Err(bad) = json::check(text) {
        let code = match bad {
            BadJson::TooDeep => "TOO_DEEP",
            BadJson::Nul => "NUL_CHARACTER",
            BadJson::HalfCharacter => "INVALID_UNICODE",
        };
        fields.refuse(field.at, code, bad.to_string());
        return None;
    }
    Some(text.into())
}

fn read_error(fields: &mut Fields, field: Field<'_, '_>) -> Option<Failure> {
    let object = fields.object::<TaskError>(field)?;
    let field = fields.required(object.field("code"));
    let code = fields.string(field);
    if code.as_deref().is_some_and(|code| !is_code(code)) {
        fields.refuse(field.at, "INVALID_CODE", "must match [A-Z][A-Z0-9_]{0,63}");
    }
    let message = fields.required(object.field("message"));
    let message = fields.string(message);
    Some(Failure::new(&code?, plain(message?)))
}

fn is_code(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let first = text.bytes().next().is_some_and(|first| first.is_ascii_uppercase());
    first && text.bytes().all(rest) && text.len() <= CODE_CHARS
}

/// Text for people. A character that databases refuse is replaced: it must not cost an outcome.
pub(super) fn plain(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
