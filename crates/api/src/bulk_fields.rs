//! The body of a bulk action.

use std::collections::HashSet;

use duly_client::wire::BulkRequest;
use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::{BULK_IDS, REASON_CHARS};
use duly_core::time::Timestamp;

use crate::error::ApiError;
use crate::fields::{self, Field, Fields};
use crate::order_fields::{read_rate, read_remark};

/// A bulk action that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) order: BulkOrder,
    /// The filter of the order, parsed.
    pub(crate) filter: Filter,
    pub(crate) dry_run: bool,
}

/// Reads a [`BulkRequest`].
pub(crate) fn read(body: &[u8], now: Timestamp) -> Result<Read, ApiError> {
    let (mut fields, object) = fields::open::<BulkRequest>(body)?;
    let [ids, all] = ["ids", "all"].map(|name| object.field(name));
    let [reason, per_second] = ["reason", "perSecond"].map(|name| object.field(name));
    let filter = object.field("filter");
    let action = read_action(&mut fields, object.field("action"));
    let text = fields.string(filter).unwrap_or_default();
    let listed = ids.is_given().then(|| read_ids(&mut fields, ids));
    let is_for_all = fields.flag(all).unwrap_or_default();
    let dry_run = fields.flag(object.field("dryRun")).unwrap_or_default();
    let why = read_remark(&mut fields, reason, REASON_CHARS);
    let rate = read_rate(&mut fields, per_second);
    let Some(action) = action else { return fields.end(None) };
    let contradicts = [
        (ids, listed.is_some() && !text.trim().is_empty(), "give a filter or ids, not both"),
        (reason, !why.is_empty() && action != BulkAction::Cancel, "goes with cancel only"),
        (per_second, rate.is_some() && action != BulkAction::Replay, "goes with replay only"),
    ];
    for (field, _, detail) in contradicts.into_iter().filter(|(_, wrong, _)| *wrong) {
        fields.refuse(field.at, "CONFLICTING_FIELDS", detail);
    }
    if listed.is_none() && text.trim().is_empty() && !is_for_all {
        let detail = "must be true to mean every task; or give a filter or ids";
        fields.refuse(all.at, "REQUIRED", detail);
    }
    let parsed = action.filter(&text, now);
    let parsed = parsed.map_err(|bad| {
        fields.refuse(filter.at, "INVALID_FILTER", bad.to_string());
    });
    let order = BulkOrder {
        action,
        filter: text,
        dead_letters: false,
        ids: listed,
        reason: why,
        per_second: rate,
    };
    fields.end(parsed.ok().map(|filter| Read { order, filter, dry_run }))
}

fn read_action(fields: &mut Fields, field: Field<'_, '_>) -> Option<BulkAction> {
    let field = fields.required(field);
    let word = fields.string(field)?;
    let known = BulkAction::ALL.iter().find(|(name, _)| *name == word);
    if known.is_none() {
        let words = BulkAction::ALL.map(|(name, _)| name).join(", ");
        fields.refuse(field.at, "UNKNOWN_WORD", format!("must be one of {words}"));
    }
    known.map(|(_, action)| *action)
}

fn read_ids(fields: &mut Fields, list: Field<'_, '_>) -> Vec<TaskId> {
    let items = fields.filled_list(list, BULK_IDS);
    let mut seen = HashSet::new();
    let ids = items.into_iter().enumerate();
    let ids = ids.filter_map(|(index, item)| fields.id(list.item(index, item)));
    ids.filter(|id| seen.insert(*id)).collect()
}
