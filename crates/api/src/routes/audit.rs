//! `GET /audit`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{AuditEntryView, AuditPage};
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::ListAudit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::{AuditPosition, Scope};
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// More than any actor, action or id has.
const MAX_CHARS: usize = 300;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_audit))
}

/// Read the audit log
///
/// What users and keys have changed, newest first: settings, tenants, keys, queues, schedules,
/// workflows, bulk actions, and orders for single tasks. Submits are not changes. An entry shows the fields
/// that differ, and never a payload or a secret. Entries are kept for 400 days.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "audit",
    extensions(("x-duly-access" = json!(Access::Admin))),
    params(
        ("actor" = Option<String>, Query, max_length = 300, example = "token:jane",
            description = "Only what this actor has done"),
        ("action" = Option<String>, Query, max_length = 300, example = "task.cancel",
            description = "Only this action; `task` stands for all on tasks"),
        ("target" = Option<String>, Query, max_length = 300,
            description = "Only what was done to the object of this id or name"),
        ("since" = Option<String>, Query, example = "24h",
            description = "Only what was done since then: an instant, or a time ago"),
        ("installation" = Option<bool>, Query, description = "Also entries of other tenants and of \
            the installation itself, such as its settings; only for callers of the installation"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 20,
            description = "How many entries; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = AuditPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_audit(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<AuditPage>, ApiError> {
    let names = ["actor", "action", "target", "since", "installation", "limit", "cursor"];
    let [actor, action, target, since, installation, limit, cursor] = query::read(&uri, names)?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let all = whole_installation(&caller, installation.as_deref())?;
    for (name, value) in [("actor", &actor), ("action", &action), ("target", &target)] {
        if value.as_deref().is_some_and(|value| !is_plain(value)) {
            let rule = format!("`{name}` must have 1 to {MAX_CHARS} printable characters");
            return Err(query::invalid(rule));
        }
    }
    // Times ago mean another instant in every request: the cursor holds for what was written.
    let filter = serde_json::json!([actor, action, target, since, all]).to_string();
    let scope = Scope { tenant: &caller.tenant, filter: &filter };
    let before =
        cursor.map(|cursor| cursor::decode::<AuditPosition>(scope, &cursor)).transpose()?;
    let since = query::since(&app, since).await?;
    let page = ListAudit {
        tenant: (!all).then(|| caller.tenant.clone()),
        actor,
        action,
        target,
        since,
        before: before.map(|before| before.0),
        // One more than asked for tells whether there is another page.
        limit: limit + 1,
    };
    let mut entries = app.engine.audit_log(page).await?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let last = entries.last().filter(|_| more).map(|last| AuditPosition(last.number));
    let next_cursor = last.map(|last| cursor::encode(scope, &last));
    let items = entries.into_iter().map(AuditEntryView::from).collect();
    Ok(Json(AuditPage { items, next_cursor }))
}

fn is_plain(text: &str) -> bool {
    (1..=MAX_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Whether the caller asks for the entries of all tenants, and may.
fn whole_installation(caller: &Caller, text: Option<&str>) -> Result<bool, ApiError> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => caller.require_installation().map(|()| true),
        Some(_) => Err(query::invalid("`installation` must be true or false")),
    }
}
