//! The description of the interface, collected from the handlers.

mod nullable;
mod security;

use duly_client::wire::event::{
    GoneTask, LeaderChangedData, NodeData, QueuePausedData, QueueResumedData, ScheduleFiredData,
    ScheduleSkippedData, SettingsChangedData, WorkflowEndedData, WorkflowStartedData,
};
use duly_client::wire::{CloudEvent, StatsView, StreamClosed, TopicGone};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa_axum::router::OpenApiRouter;

use self::security::Schemes;

use crate::app::App;
use crate::responses::problem;
use crate::routes::{health, versioned};

/// The OpenAPI 3.1 document.
pub fn document() -> utoipa::openapi::OpenApi {
    described().into_openapi()
}

/// The document as text, for a file under version control: its keys are in order.
pub fn document_text() -> String {
    let ordered = serde_json::to_value(document()).expect("the document can be written as JSON");
    serde_json::to_string_pretty(&ordered).expect("JSON can be written as text")
}

/// The routes as they are documented: health at the root, all else under `/v1`.
pub(crate) fn described() -> OpenApiRouter<App> {
    let mut routes = versioned();
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.delete].into_iter().flatten() {
            add_problems(operation, &[BAD_PARAMETER, FOREIGN, NO_TENANT, FAILED, AWAY]);
        }
        for operation in [&mut item.put, &mut item.post, &mut item.patch].into_iter().flatten() {
            add_problems(operation, &BAD_BODY);
            add_problems(operation, &[FOREIGN, FAILED, AWAY]);
        }
        operations(item).for_each(security::describe);
    }
    let mut health = health::routes();
    for item in health.get_openapi_mut().paths.paths.values_mut() {
        item.get.iter_mut().for_each(|operation| add_problems(operation, &[BAD_PARAMETER]));
        operations(item).for_each(security::describe);
    }
    let mut all =
        OpenApiRouter::with_openapi(Described::openapi()).nest("/v1", routes).merge(health);
    all.get_openapi_mut().components.iter_mut().for_each(nullable::describe);
    all
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, patch, delete, .. } = item;
    [get, put, post, patch, delete].into_iter().flatten()
}

/// A status, and the codes that come with it.
type Common = (&'static str, &'static str);

const BAD_PARAMETER: Common = ("400", "`INVALID_PARAMETER`");
const FOREIGN: Common = ("403", "`FORBIDDEN`, `FOREIGN_HOST`, `CROSS_SITE`");
const NO_TENANT: Common = ("422", "`TENANT_REQUIRED`");
const FAILED: Common = ("500", "`INTERNAL`");
const AWAY: Common =
    ("503", "`OVERLOADED`, `SHUTTING_DOWN`, `STORE_UNAVAILABLE`; see `Retry-After`");
const BAD_BODY: [Common; 5] = [
    ("400", "`MALFORMED_JSON`, `INCOMPLETE_BODY`, `INVALID_PARAMETER`"),
    ("408", "`BODY_TIMEOUT`"),
    ("413", "`BODY_TOO_LARGE`"),
    ("415", "`UNSUPPORTED_MEDIA_TYPE`"),
    ("422", "`INVALID_FIELDS`, `TENANT_REQUIRED`"),
];

/// Adds the problems that any such request may answer with, so that no handler repeats them. A
/// handler that describes one of these statuses describes all of it.
fn add_problems(operation: &mut Operation, problems: &[Common]) {
    for (status, description) in problems {
        let known = operation.responses.responses.entry((*status).to_owned());
        known.or_insert_with(|| problem(description).into());
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Duly",
        description = "A distributed task scheduler.\n\n\
            JSON names are camelCase, times are RFC 3339 in UTC, durations are `…Seconds` in \
            bodies and `30s` or `PT30S` in the query. Unknown fields and parameters are refused. \
            Everything under `/v1` also answers without that prefix.\n\n\
            A request that is refused answers with a problem (RFC 9457, \
            `application/problem+json`): `code` is stable, `type` is `urn:duly:error:` and the \
            code, `errors` says what is wrong field by field, and `requestId` is also in the \
            header `X-Request-Id`. Any request may answer 400 `MISSING_HOST`, 403 `FOREIGN_HOST` \
            or `CROSS_SITE`, 500 `INTERNAL`, and, with `Retry-After`, 503 `OVERLOADED`, \
            `SHUTTING_DOWN` or `STORE_UNAVAILABLE`.\n\n\
            A server with keys answers 401 `UNAUTHENTICATED` to a request without a valid token or \
            API key, and 403 `FORBIDDEN` to a caller without one of the roles that `x-roles` of the \
            operation lists. Where `x-tenant` is `*`, the role must be held for the whole \
            installation. A caller that holds its roles for all tenants names one with the header \
            `Duly-Tenant`, or gets 422 `TENANT_REQUIRED`.",
    ),
    modifiers(&Schemes),
    // What streams tell, which is no body of an answer.
    components(schemas(
        CloudEvent, GoneTask, LeaderChangedData, NodeData, QueuePausedData, QueueResumedData,
        ScheduleFiredData, ScheduleSkippedData, SettingsChangedData, StatsView, StreamClosed, TopicGone,
        WorkflowEndedData, WorkflowStartedData,
    )),
    tags(
        (name = "tasks", description = "Submit tasks and see what becomes of them"),
        (name = "workflows", description = "Submit tasks that depend on each other"),
        (name = "schedules", description = "Run tasks and workflows at set times"),
        (name = "dead letters", description = "Look at tasks that failed, and run them again"),
        (name = "bulk actions", description = "One order for many tasks"),
        (name = "queues", description = "See what waits where, and pause it"),
        (name = "workers", description = "Get work over the network and be done with it"),
        (name = "events", description = "Be told what happens"),
        (name = "nodes", description = "The processes of the server"),
        (name = "settings", description = "What holds for the whole installation"),
        (name = "audit", description = "Who changed what"),
        (name = "tenants", description = "Limit tenants, and suspend them"),
        (name = "keys", description = "Give programs keys, and take them away"),
        (name = "auth", description = "Exchange keys for tokens, and sign browsers in"),
        (name = "admin", description = "Back the installation up"),
        (name = "health", description = "What the server says of itself"),
    ),
)]
struct Described;
