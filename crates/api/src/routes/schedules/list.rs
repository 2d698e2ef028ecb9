//! `GET /schedules`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::SchedulePage;
use duly_core::limits::{DEFAULT_PAGE, LABELS, PAGE, PAGE_BYTES};
use duly_core::name::ScheduleName;
use duly_core::ports::store::ListSchedules;
use duly_engine::command::schedules::ScheduleView;

use super::view;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query, schedule_fields};

/// What a parameter that names a label begins with.
const LABEL: &str = "label.";

/// List schedules
///
/// By name. A page may be shorter than `limit`, even empty; on the last one `nextCursor` is null.
#[utoipa::path(
    get, path = "/schedules", operation_id = "list_schedules", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many schedules; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before, \
            with the same filters"),
        ("status" = Option<String>, Query, example = "ACTIVE",
            description = "Only those in this state: ACTIVE or PAUSED"),
        ("label.*" = Option<String>, Query, example = "eu",
            description = "Only those with this label, such as `label.region=eu`; each label is a \
                parameter of its own, and all must match"),
    ),
    responses(
        (status = 200, description = "One page", body = SchedulePage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_schedules(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<SchedulePage>, ApiError> {
    let [limit, cursor, status] = query::read(&uri, ["limit", "cursor", "status"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let labels = read_labels(&uri)?;
    let filter = format!("{status:?} {labels:?}");
    let scope = Scope { tenant: &caller.tenant, filter: &filter };
    let after = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let read_status = |text: String| {
        let status = schedule_fields::status(&text.to_ascii_uppercase());
        status.ok_or_else(|| query::invalid("`status` must be ACTIVE or PAUSED"))
    };
    let page = ListSchedules {
        tenant: caller.tenant.clone(),
        status: status.map(read_status).transpose()?,
        labels,
        after,
        limit,
    };
    let (mut found, mut next) = app.engine.schedules(page).await?;
    if let Some(last) = shorten(&mut found) {
        next = Some(last);
    }
    let next_cursor = next.map(|last| cursor::encode(scope, &last));
    let redaction = app.engine.redaction(&caller.tenant).await?;
    let items = found.into_iter().map(|found| view(found, &redaction)).collect();
    Ok(Json(SchedulePage { items, next_cursor }))
}

/// Ends a page of large templates early; returns its last name then.
fn shorten(found: &mut Vec<ScheduleView>) -> Option<ScheduleName> {
    let mut bytes = 0;
    let fits = |view: &&ScheduleView| {
        bytes += view.schedule.definition.template.len();
        bytes <= PAGE_BYTES
    };
    let count = found.iter().take_while(fits).count().max(1);
    if count >= found.len() {
        return None;
    }
    found.truncate(count);
    found.last().map(|view| view.schedule.name.clone())
}

fn read_labels(uri: &Uri) -> Result<BTreeMap<String, String>, ApiError> {
    let label =
        |(name, value): (String, String)| Some((name.strip_prefix(LABEL)?.to_owned(), value));
    let labels: BTreeMap<_, _> = query::pairs(uri)?.into_iter().filter_map(label).collect();
    if labels.len() > LABELS {
        return Err(query::invalid(format!("at most {LABELS} labels can be given")));
    }
    Ok(labels)
}
