//! `GET /dlq/groups`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{ErrorGroupPage, ErrorGroupView};
use duly_core::filter::Filter;
use duly_core::limits::DEAD_GROUPS;
use duly_core::ports::store::{DeadGroups, GroupDead};

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::query;

/// Count dead letters by error
///
/// Dead letters of one queue and type whose errors differ only in numbers, ids and quoted names
/// are one group. The largest group comes first. At most the last 50,000 failures are looked at,
/// and 5,000 where a term asks for labels, texts of errors or workers; `partial` says whether there
/// are more.
#[utoipa::path(
    get, path = "/dlq/groups", operation_id = "list_error_groups", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, example = 20,
            description = "How many groups; 100 if absent"),
        ("filter" = Option<String>, Query, example = "queue:mail since:24h",
            description = "Terms that must all hold, as for `GET /dlq`"),
    ),
    responses(
        (status = 200, description = "The groups", body = ErrorGroupPage),
    ),
)]
pub(crate) async fn list_error_groups(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<ErrorGroupPage>, ApiError> {
    let [limit, text] = query::read(&uri, ["limit", "filter"])?;
    let limit = query::limit(limit, DEAD_GROUPS, DEAD_GROUPS)?;
    let filter = query::filter(&app, &text.unwrap_or_default(), Filter::parse_dead).await?;
    let which = GroupDead { tenant: caller.tenant, filter, limit };
    let DeadGroups { groups, scanned, partial } = app.engine.dead_groups(which).await?;
    let items = groups.into_iter().map(ErrorGroupView::from).collect();
    Ok(Json(ErrorGroupPage { items, next_cursor: None, scanned, partial }))
}
