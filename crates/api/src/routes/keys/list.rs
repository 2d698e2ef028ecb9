//! `GET /keys`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{KeyPage, KeyView};
use duly_core::access::TenantGrant;
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::ListKeys;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List API keys
///
/// Oldest first, also those that have expired or were revoked. Their secrets are stored nowhere.
#[utoipa::path(
    get, path = "/keys", operation_id = "list_keys", tag = "keys",
    extensions(("x-duly-access" = json!(Access::Admin))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many keys; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
        ("installation" = Option<bool>, Query, example = false,
            description = "Whether to list the keys for the installation, whose tenant is `*`, \
                instead of those of the tenant; only for admins of the installation"),
    ),
    responses(
        (status = 200, description = "One page", body = KeyPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_keys(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<KeyPage>, ApiError> {
    let [limit, cursor, installation] = query::read(&uri, ["limit", "cursor", "installation"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let tenant = match installation.as_deref() {
        None | Some("false") => TenantGrant::One(caller.tenant.clone()),
        Some("true") => {
            caller.require_installation()?;
            TenantGrant::Installation
        }
        Some(_) => return Err(query::invalid("`installation` must be true or false")),
    };
    let filter = tenant.to_string();
    let scope = Scope { tenant: &caller.tenant, filter: &filter };
    let after = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let page = ListKeys { tenant: Some(tenant), after, limit: limit + 1 };
    let mut keys = app.engine.keys(page).await?;
    let is_last = keys.len() <= limit as usize;
    keys.truncate(limit as usize);
    let last = keys.last().filter(|_| !is_last);
    let next_cursor = last.map(|last| cursor::encode(scope, &last.id));
    Ok(Json(KeyPage { items: keys.into_iter().map(KeyView::from).collect(), next_cursor }))
}
