//! `GET /dlq`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{DeadLetter, DeadLetterPage};
use duly_core::filter::Filter;
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::ports::store::{DeadList, ListDead};

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List dead letters
///
/// Failed tasks, last failure first. A page may be shorter than `limit`, even empty, since it looks
/// at 10,000 dead letters at the most; on the last one `nextCursor` is null.
#[utoipa::path(
    get, path = "/dlq", operation_id = "list_dead_letters", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before, \
            with the same filter"),
        ("filter" = Option<String>, Query, example = "queue:mail error:timeout since:24h",
            description = "Terms that must all hold, as for `GET /tasks`; `since:` and `until:` \
                go by the failure, and `status:` takes only `FAILED`"),
    ),
    responses(
        (status = 200, description = "One page", body = DeadLetterPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<DeadLetterPage>, ApiError> {
    let [limit, cursor, text] = query::read(&uri, ["limit", "cursor", "filter"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    let text = text.unwrap_or_default();
    let scope = Scope { tenant: &caller.tenant, filter: &text };
    let filter = query::filter(&app, &text, Filter::parse_dead).await?;
    let before = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let page = ListDead { tenant: scope.tenant.clone(), filter, before, limit };
    let DeadList { tasks, next_before, scanned, partial } = app.engine.dead_letters(page).await?;
    let next_cursor = next_before.map(|last| cursor::encode(scope, &last));
    let items = tasks.into_iter().map(DeadLetter::from).collect();
    Ok(Json(DeadLetterPage { items, next_cursor, scanned, partial }))
}
