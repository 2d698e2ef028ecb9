//! The body of an order for many tasks.

use std::collections::HashSet;

use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::{BULK_IDS, REASON_CHARS};
use duly_core::time::Timestamp;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, Fields, Place};
use crate::order_fields::{read_rate, read_remark};

const NAMES: [&str; 7] = ["action", "filter", "ids", "all", "dryRun", "reason", "perSecond"];

/// An order that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) order: BulkOrder,
    /// What the order's filter means.
    pub(crate) filter: Filter,
    pub(crate) dry_run: bool,
}

/// `{action, filter | ids | all, dryRun?, reason?, perSecond?}`
pub(crate) fn read(body: &[u8], now: Timestamp) -> Result<Read, ApiError> {
    let mut fields = Fields::default();
    let Some(values) = fields.object(fields::parse(body)?, Place::Body, NAMES) else {
        return fields.end(None);
    };
    let [action, filter, ids, all, dry_run, reason, per_second] = values;
    let at = Place::Body;
    let action = read_action(&mut fields, action, at.field("action"));
    let text = fields.string(filter, at.field("filter")).unwrap_or_default();
    let ids = ids.map(|ids| read_ids(&mut fields, ids, at.field("ids")));
    let all = fields.flag(all, at.field("all")).unwrap_or_default();
    let dry_run = fields.flag(dry_run, at.field("dryRun")).unwrap_or_default();
    let reason = read_remark(&mut fields, reason, at.field("reason"), REASON_CHARS);
    let per_second = read_rate(&mut fields, per_second, at.field("perSecond"));
    let Some(action) = action else { return fields.end(None) };
    let contradicts = [
        ("ids", ids.is_some() && !text.trim().is_empty(), "give a filter or ids, not both"),
        ("reason", !reason.is_empty() && action != BulkAction::Cancel, "goes with cancel only"),
        (
            "perSecond",
            per_second.is_some() && action != BulkAction::Replay,
            "goes with replay only",
        ),
    ];
    for (name, _, detail) in contradicts.into_iter().filter(|(_, wrong, _)| *wrong) {
        fields.refuse(at.field(name), "CONFLICTING_FIELDS", detail);
    }
    if ids.is_none() && text.trim().is_empty() && !all {
        let detail = "must be true to mean every task; or give a filter or ids";
        fields.refuse(at.field("all"), "REQUIRED", detail);
    }
    let filter = action.filter(&text, now);
    let filter = filter.map_err(|bad| {
        fields.refuse(at.field("filter"), "INVALID_FILTER", bad.to_string());
    });
    let order = BulkOrder { action, filter: text, ids, reason, per_second };
    fields.end(filter.ok().map(|filter| Read { order, filter, dry_run }))
}

fn read_action(fields: &mut Fields, value: Option<&RawValue>, at: Place<'_>) -> Option<BulkAction> {
    let word = fields.required(value, at)?;
    let word = fields.string(Some(word), at)?;
    let known = BulkAction::ALL.iter().find(|(name, _)| *name == word);
    if known.is_none() {
        let words = BulkAction::ALL.map(|(name, _)| name).join(", ");
        fields.refuse(at, "UNKNOWN_WORD", format!("must be one of {words}"));
    }
    known.map(|(_, action)| *action)
}

fn read_ids(fields: &mut Fields, value: &RawValue, at: Place<'_>) -> Vec<TaskId> {
    let items = fields.filled_list(Some(value), at, BULK_IDS);
    let mut seen = HashSet::new();
    let ids = items.iter().enumerate();
    let ids = ids.filter_map(|(place, item)| fields.id(Some(item), at.item(place)));
    ids.filter(|id| seen.insert(*id)).collect()
}
