//! Problems that several routes answer with, to be named in their `responses(…)`.

use std::collections::BTreeMap;

use duly_client::wire::Problem;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

macro_rules! responses {
    ($($name:ident $status:literal $description:literal;)*) => {
        $(
            #[doc = $description]
            pub(crate) enum $name {}

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    BTreeMap::from([($status.to_owned(), problem($description).into())])
                }
            }
        )*
    };
}

responses! {
    InvalidCursor "400" "`INVALID_PARAMETER`, `INVALID_CURSOR`";
    InvalidPosition "400" "`INVALID_PARAMETER`, `INVALID_POSITION`";
    TenantSuspended "403" "`TENANT_SUSPENDED`, `FORBIDDEN`, `FOREIGN_HOST`, `CROSS_SITE`";
    InstallationOnly "403" "`FORBIDDEN`: only for admins of the installation; `FOREIGN_HOST`, `CROSS_SITE`";
    TaskNotFound "404" "`TASK_NOT_FOUND`";
    BulkActionNotFound "404" "`BULK_ACTION_NOT_FOUND`";
    QueueNotFound "404" "`QUEUE_NOT_FOUND`";
    WorkflowNotFound "404" "`WORKFLOW_NOT_FOUND`";
    ScheduleNotFound "404" "`SCHEDULE_NOT_FOUND`";
    TenantNotFound "404" "`TENANT_NOT_FOUND`";
    SinkNotFound "404" "`SINK_NOT_FOUND`";
    KeyNotFound "404" "`KEY_NOT_FOUND`";
    SessionNotFound "404" "`SESSION_NOT_FOUND`";
    SessionEnded "404" "`SESSION_NOT_FOUND`: register again";
    AmbiguousId "409" "`AMBIGUOUS_ID`";
    SystemQueue "409" "`SYSTEM_QUEUE`: its name begins with `duly.`";
    ScheduleManaged "409" "`SCHEDULE_MANAGED`: a configuration file defines it";
    ScheduleMismatch "412" "`VERSION_MISMATCH`: it is at another version";
    VersionMismatch "412" "`VERSION_MISMATCH`: the settings have changed since they were read";
    PayloadTooLarge "413" "`BODY_TOO_LARGE`, `PAYLOAD_TOO_LARGE`";
    TooManyStreams "429" "`TOO_MANY_STREAMS`, `RATE_LIMITED`, `TOO_MANY_ATTEMPTS`; see `Retry-After`";
    QuotaExceeded "429" "`QUOTA_EXCEEDED`; see `Retry-After`";
    TenantMismatch "412" "`VERSION_MISMATCH`: its record is at another version";
    UnexpectedFields "422" "`INVALID_FIELDS`: it takes none";
    IfMatchRequired "428" "`IF_MATCH_REQUIRED`";
}

/// A response with a problem as its body.
pub(crate) fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build()
}
