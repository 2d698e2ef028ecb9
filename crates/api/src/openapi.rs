//! The description of the interface, collected from the handlers.

use duly_client::wire::Problem;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, Ref, Response, ResponseBuilder};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::routes::{health, versioned};

/// The OpenAPI 3.1 document.
pub fn document() -> utoipa::openapi::OpenApi {
    described().into_openapi()
}

/// The routes as they are documented: health at the root, all else under `/v1`.
pub(crate) fn described() -> OpenApiRouter<App> {
    let mut routes = versioned();
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        operations(item).for_each(add_common_problems);
    }
    OpenApiRouter::with_openapi(Described::openapi()).nest("/v1", routes).merge(health::routes())
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete]
        .into_iter()
        .flatten()
}

/// What any request can be answered with, so that no handler has to repeat it.
fn add_common_problems(operation: &mut Operation) {
    let mut add = |status: &str, description: &str| {
        let problem = problem(description).into();
        operation.responses.responses.insert(status.to_owned(), problem);
    };
    add("403", "`FOREIGN_HOST`, `CROSS_SITE`");
    add("500", "`INTERNAL`");
    add("503", "`OVERLOADED`, `SHUTTING_DOWN`, `STORE_UNAVAILABLE`; see `Retry-After`");
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build()
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
            `SHUTTING_DOWN` or `STORE_UNAVAILABLE`.",
    ),
    tags(
        (name = "tasks", description = "Submit tasks and see what becomes of them"),
        (name = "dead letters", description = "Look at tasks that failed, and run them again"),
        (name = "bulk actions", description = "One order for many tasks"),
        (name = "queues", description = "See what waits where, and pause it"),
        (name = "workers", description = "Get work over the network and be done with it"),
        (name = "nodes", description = "The processes of the server"),
        (name = "settings", description = "What holds for the whole installation"),
        (name = "health", description = "What the server says of itself"),
    ),
)]
struct Described;
