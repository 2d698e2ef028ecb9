//! `GET /dlq`

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use duly_client::wire::{DeadLetter, DeadLetterPage, Problem};
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::ListDead;

use super::filter;
use crate::app::App;
use crate::error::ApiError;
use crate::{cursor, query};

/// List dead letters
///
/// Failed tasks, last failure first. A page may be shorter than `limit`; on the last one
/// `nextCursor` is null.
#[utoipa::path(
    get, path = "/dlq", operation_id = "list_dead_letters", tag = "dead letters",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
        ("filter" = Option<String>, Query, example = "queue:mail type:email since:24h",
            description = "Terms that must all hold: `queue:`, `type:`, `group:`, and `since:` \
                and `until:` with a time ago (`24h`, `PT24H`) or an instant"),
    ),
    responses(
        (status = 200, description = "One page", body = DeadLetterPage),
        (status = 400, description = "`INVALID_PARAMETER`, `INVALID_CURSOR`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Json<DeadLetterPage>, ApiError> {
    let [limit, cursor, text] = query::read(&uri, ["limit", "cursor", "filter"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let tenant = app.tenant_of(&headers);
    let before = cursor.map(|cursor| cursor::decode(tenant, &cursor)).transpose()?;
    let filter = filter(&app, text).await?;
    let page = ListDead { tenant: tenant.clone(), filter, before, limit };
    let page = app.engine.dead_letters(page).await?;
    let next_cursor = page.next_before.map(|last| cursor::encode(tenant, &last));
    let items = page.tasks.into_iter().map(DeadLetter::from).collect();
    Ok(Json(DeadLetterPage { items, next_cursor }))
}
