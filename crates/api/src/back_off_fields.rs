//! The object `backoff` of a task and of the settings.

use duly_client::wire::Backoff;
use duly_core::submit::BackOffDraft;

use crate::fields::{Field, Fields};

/// Reads the object, if there is one. `name` names it to a caller that sends an unknown field.
pub(crate) fn read(fields: &mut Fields, field: Field<'_, '_>, name: &str) -> Option<BackOffDraft> {
    let object = fields.named_object::<Backoff>(field, name)?;
    Some(BackOffDraft {
        strategy: fields.string(object.field("strategy")),
        base_seconds: fields.number(object.field("baseSeconds")),
        factor: fields.number(object.field("factor")),
        cap_seconds: fields.number(object.field("capSeconds")),
        jitter: fields.string(object.field("jitter")),
    })
}
