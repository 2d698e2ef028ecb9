//! Every answer that is not a success: one error type, one table of codes, one rendering.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{Problem, ProblemField};
use duly_core::id::TaskId;
use duly_core::limits::{SCHEDULES, TENANTS};
use duly_core::ports::store;
use duly_core::submit::{FieldError, PAYLOAD_TOO_LARGE};
use duly_core::workflow::UNKNOWN_WORKFLOW;
use duly_engine::command::payloads::BadPayload;
use duly_engine::command::schedules::ScheduleError;
use duly_engine::command::{bulk, keys, settings, submit, tenants, worker, workflows};

macro_rules! codes {
    ($($name:ident $code:literal $status:ident $title:literal;)*) => {
        /// Why a request was refused. The text of a code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// All codes, by status.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status that goes with it.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// What it means.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

codes! {
    MalformedJson "MALFORMED_JSON" BAD_REQUEST "The body is not valid JSON";
    IncompleteBody "INCOMPLETE_BODY" BAD_REQUEST "The body ended early";
    InvalidParameter "INVALID_PARAMETER" BAD_REQUEST "A parameter is not valid";
    InvalidCursor "INVALID_CURSOR" BAD_REQUEST "The cursor does not belong to this list";
    InvalidPosition "INVALID_POSITION" BAD_REQUEST "The text is no place in the stream of events";
    MissingHost "MISSING_HOST" BAD_REQUEST "The request names no single host";
    Unauthenticated "UNAUTHENTICATED" UNAUTHORIZED "The request has no valid token or key";
    Forbidden "FORBIDDEN" FORBIDDEN "The caller may not do this";
    ForeignHost "FOREIGN_HOST" FORBIDDEN "The host is not served here";
    CrossSite "CROSS_SITE" FORBIDDEN "Requests from other sites are refused";
    TenantSuspended "TENANT_SUSPENDED" FORBIDDEN "The tenant is suspended";
    NotFound "NOT_FOUND" NOT_FOUND "There is nothing at this path";
    TaskNotFound "TASK_NOT_FOUND" NOT_FOUND "There is no such task";
    QueueNotFound "QUEUE_NOT_FOUND" NOT_FOUND "There is no such queue";
    BulkActionNotFound "BULK_ACTION_NOT_FOUND" NOT_FOUND "There is no such bulk action";
    WorkflowNotFound "WORKFLOW_NOT_FOUND" NOT_FOUND "There is no such workflow";
    SessionNotFound "SESSION_NOT_FOUND" NOT_FOUND "There is no such session";
    ScheduleNotFound "SCHEDULE_NOT_FOUND" NOT_FOUND "There is no such schedule";
    TenantNotFound "TENANT_NOT_FOUND" NOT_FOUND "There is no record of this tenant";
    SinkNotFound "SINK_NOT_FOUND" NOT_FOUND "There is no such sink";
    KeyNotFound "KEY_NOT_FOUND" NOT_FOUND "There is no such key";
    VersionNotFound "VERSION_NOT_FOUND" NOT_FOUND "There is no such version";
    NoSigningKey "NO_SIGNING_KEY" CONFLICT "The server signs no tokens";
    AmbiguousId "AMBIGUOUS_ID" CONFLICT "The id is the beginning of several";
    StateConflict "STATE_CONFLICT" CONFLICT "The task is in another state";
    BackupNotHere "BACKUP_NOT_HERE" CONFLICT "This store is backed up with tools of its own";
    OpenChildren "OPEN_CHILDREN" CONFLICT "Tasks that depend on it have not ended";
    WorkflowEnded "WORKFLOW_ENDED" CONFLICT "The workflow has ended";
    SystemQueue "SYSTEM_QUEUE" CONFLICT "The queue is for the system's own tasks";
    ScheduleManaged "SCHEDULE_MANAGED" CONFLICT "A configuration file defines the schedule";
    MethodNotAllowed "METHOD_NOT_ALLOWED" METHOD_NOT_ALLOWED "The path has no such method";
    BodyTimeout "BODY_TIMEOUT" REQUEST_TIMEOUT "The body took too long";
    VersionMismatch "VERSION_MISMATCH" PRECONDITION_FAILED "There is a newer version";
    IfMatchRequired "IF_MATCH_REQUIRED" PRECONDITION_REQUIRED "The header If-Match is missing";
    BodyTooLarge "BODY_TOO_LARGE" PAYLOAD_TOO_LARGE "The body is too large";
    PayloadTooLarge "PAYLOAD_TOO_LARGE" PAYLOAD_TOO_LARGE "The payload is too large";
    TooManyItems "TOO_MANY_ITEMS" PAYLOAD_TOO_LARGE "The batch has too many items";
    TooLarge "TOO_LARGE" PAYLOAD_TOO_LARGE "The request exceeds a limit of the store";
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" UNSUPPORTED_MEDIA_TYPE
        "The body is of a type that is not taken here";
    InvalidFields "INVALID_FIELDS" UNPROCESSABLE_ENTITY "Some fields are not valid";
    TenantRequired "TENANT_REQUIRED" UNPROCESSABLE_ENTITY "The request names no tenant";
    KeyRequired "KEY_REQUIRED" UNPROCESSABLE_ENTITY "Only an API key can be exchanged";
    UnsupportedField "UNSUPPORTED_FIELD" UNPROCESSABLE_ENTITY "A field is not supported yet";
    ConflictingFields "CONFLICTING_FIELDS" UNPROCESSABLE_ENTITY "Two fields contradict each other";
    IdempotencyKeyReused "IDEMPOTENCY_KEY_REUSED" UNPROCESSABLE_ENTITY
        "The idempotency key belongs to another body";
    LaneLimit "LANE_LIMIT" UNPROCESSABLE_ENTITY "There are too many queue and type pairs";
    ScheduleLimit "SCHEDULE_LIMIT" UNPROCESSABLE_ENTITY "There are too many schedules";
    RateLimited "RATE_LIMITED" TOO_MANY_REQUESTS "The caller makes too many requests";
    TooManyAttempts "TOO_MANY_ATTEMPTS" TOO_MANY_REQUESTS "Too many sign-ins have failed";
    TenantLimit "TENANT_LIMIT" UNPROCESSABLE_ENTITY "The tenant has as many as its quota allows";
    QuotaExceeded "QUOTA_EXCEEDED" TOO_MANY_REQUESTS "A quota of the tenant is used up";
    TooManyStreams "TOO_MANY_STREAMS" TOO_MANY_REQUESTS "There are too many open streams of events";
    TooManySessions "TOO_MANY_SESSIONS" TOO_MANY_REQUESTS "There are too many open sessions";
    Internal "INTERNAL" INTERNAL_SERVER_ERROR "The server failed";
    Overloaded "OVERLOADED" SERVICE_UNAVAILABLE "The server has too much to do";
    ShuttingDown "SHUTTING_DOWN" SERVICE_UNAVAILABLE "The server is shutting down";
    StoreUnavailable "STORE_UNAVAILABLE" SERVICE_UNAVAILABLE "The store is unavailable";
}

/// A request that is refused or failed; cheap to clone.
///
/// As a response it has no body yet: the id of the request is known only to the layer around all
/// routes, which calls [`ApiError::render`].
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    /// What an id in the path may stand for.
    candidates: Vec<TaskId>,
    retry_after: Option<u16>,
    /// What the log gets and the caller does not.
    cause: Option<String>,
}

impl Inner {
    fn new(code: Code, detail: Cow<'static, str>) -> Self {
        let (errors, candidates) = (Vec::new(), Vec::new());
        Self { code, detail, errors, candidates, retry_after: None, cause: None }
    }
}

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::with_errors(code, detail, Vec::new())
    }

    pub(crate) fn with_errors(
        code: Code,
        detail: impl Into<Cow<'static, str>>,
        errors: Vec<FieldError>,
    ) -> Self {
        Self(Arc::new(Inner { errors, ..Inner::new(code, detail.into()) }))
    }

    /// An id in the path that is the beginning of several.
    pub(crate) fn ambiguous(candidates: Vec<TaskId>) -> Self {
        let list: Vec<_> = candidates.iter().map(ToString::to_string).collect();
        let detail = format!("several ids begin so; give more of it: {}", list.join(", "));
        Self(Arc::new(Inner { candidates, ..Inner::new(Code::AmbiguousId, detail.into()) }))
    }

    /// All that is wrong with the fields of a body; `unlisted` more were found.
    pub(crate) fn fields(errors: Vec<FieldError>, unlisted: usize) -> Self {
        let has = |code| errors.iter().any(|error| error.code == code);
        let code = if has(PAYLOAD_TOO_LARGE) {
            Code::PayloadTooLarge
        } else if errors.iter().all(|error| error.code == Code::UnsupportedField.as_str()) {
            Code::UnsupportedField
        } else {
            Code::InvalidFields
        };
        let first = errors.first().expect("a refusal names at least one field");
        let mut detail = match first.pointer.as_str() {
            "" => format!("it {}", first.detail),
            pointer => format!("{pointer}: {}", first.detail),
        };
        if errors.len() + unlisted > 1 {
            detail += &format!(" (and {} more)", errors.len() + unlisted - 1);
        }
        Self::with_errors(code, detail, errors)
    }

    pub(crate) fn malformed(error: &serde_json::Error) -> Self {
        Self::new(Code::MalformedJson, error.to_string())
    }

    /// Something that must not happen; the cause is for the log alone.
    pub(crate) fn internal(cause: String) -> Self {
        let detail = "an internal error occurred; the server's log has it under the request id";
        Self(Arc::new(Inner { cause: Some(cause), ..Inner::new(Code::Internal, detail.into()) }))
    }

    /// Answers alike for a schedule that does not exist and for another tenant's.
    pub(crate) fn schedule_not_found() -> Self {
        Self::new(Code::ScheduleNotFound, "there is no schedule of this name")
    }

    /// The same whatever is wrong, so that nobody learns which part of a token to change.
    pub(crate) fn unauthenticated() -> Self {
        let detail = "send a valid token or API key as `Authorization: Bearer …`";
        Self::new(Code::Unauthenticated, detail)
    }

    pub(crate) fn too_many_attempts(wait: Duration) -> Self {
        let detail = "too many sign-ins have failed from this address; try again later";
        Self::retry(Code::TooManyAttempts, seconds_up(wait), detail)
    }

    pub(crate) fn rate_limited(wait: Duration) -> Self {
        let detail = "this caller makes more requests in a second than the server allows";
        Self::retry(Code::RateLimited, seconds_up(wait), detail)
    }

    pub(crate) fn too_many_streams(detail: &'static str) -> Self {
        Self::retry(Code::TooManyStreams, 10, detail)
    }

    /// A payload that the tenant may not have.
    pub(crate) fn bad_payload(pointer: String, why: BadPayload) -> Self {
        let code = match why {
            BadPayload::TooLarge { .. } => "QUOTA_EXCEEDED",
            BadPayload::Masked => "MASKED",
        };
        Self::fields(vec![FieldError { pointer, code, detail: why.to_string() }], 0)
    }

    pub(crate) fn overloaded(detail: &'static str) -> Self {
        Self::retry(Code::Overloaded, 1, detail)
    }

    pub(crate) fn shutting_down() -> Self {
        let detail = "the server is shutting down; try again when it is back";
        Self::retry(Code::ShuttingDown, 5, detail)
    }

    fn retry(code: Code, seconds: u16, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Arc::new(Inner { retry_after: Some(seconds), ..Inner::new(code, detail.into()) }))
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    #[cfg(test)]
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// The problem as the caller sees it.
    pub(crate) fn problem(&self, request_id: Option<&str>) -> Problem {
        let Inner { code, detail, errors, candidates, .. } = &*self.0;
        let field = |error: &FieldError| ProblemField {
            pointer: error.pointer.clone(),
            code: error.code.to_owned(),
            detail: error.detail.clone(),
        };
        Problem {
            r#type: format!("urn:duly:error:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status().as_u16(),
            code: code.as_str().to_owned(),
            detail: detail.clone().into_owned(),
            request_id: request_id.map(str::to_owned),
            errors: errors.iter().map(field).collect(),
            candidates: candidates.clone(),
        }
    }

    /// Completes the response: body, type, `Retry-After`; a failure of ours is logged here, once.
    pub(crate) fn render(&self, response: &mut Response, request_id: &str) {
        if let Some(cause) = &self.0.cause {
            tracing::error!(request.id = request_id, cause, "request failed");
        }
        let body = serde_json::to_vec(&self.problem(Some(request_id)))
            .expect("a problem can always be written as JSON");
        *response.status_mut() = self.0.code.status();
        *response.body_mut() = body.into();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.0.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.0.code == Code::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer realm=\"duly\"");
            headers.insert(WWW_AUTHENTICATE, scheme);
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<&store::Error> for ApiError {
    fn from(error: &store::Error) -> Self {
        match error {
            store::Error::Unavailable { .. } | store::Error::Blocked { .. } => {
                Self::retry(Code::StoreUnavailable, 1, error.to_string())
            }
            store::Error::TooLarge { .. } => Self::new(Code::TooLarge, error.to_string()),
            store::Error::Corrupt { .. } | store::Error::Backend { .. } => {
                Self::internal(chain(error))
            }
        }
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        Self::from(&error)
    }
}

impl From<submit::Error> for ApiError {
    fn from(error: submit::Error) -> Self {
        match error {
            submit::Error::Overloaded => Self::overloaded(
                "too many submissions are waiting for the store; try again in a moment",
            ),
            submit::Error::Denied(denied) => Self::from(denied),
            submit::Error::Closed => Self::shutting_down(),
            submit::Error::Store(error) => Self::from(&*error),
        }
    }
}

impl From<bulk::Error> for ApiError {
    fn from(error: bulk::Error) -> Self {
        match error {
            bulk::Error::Invalid(errors) => Self::fields(errors, 0),
            bulk::Error::Refused(refused) => refused.into(),
            bulk::Error::Submit(error) => error.into(),
        }
    }
}

impl From<submit::Refused> for ApiError {
    fn from(refused: submit::Refused) -> Self {
        let detail = refused.to_string();
        match refused {
            submit::Refused::TooFarAhead => {
                let detail = "lies more than 400 days ahead";
                Self::fields(vec![FieldError::of("runAt", "OUT_OF_RANGE", detail)], 0)
            }
            submit::Refused::Payload(bad) => Self::bad_payload("/payload".to_owned(), bad),
            submit::Refused::KeyReused => Self::new(Code::IdempotencyKeyReused, detail),
            submit::Refused::LaneLimit => Self::new(Code::LaneLimit, detail),
            submit::Refused::UnknownParent { .. } => {
                Self::fields(vec![FieldError::of("dependencies", "UNKNOWN_TASK", detail)], 0)
            }
            submit::Refused::TooManyChildren { .. } => {
                Self::fields(vec![FieldError::of("dependencies", "TOO_MANY", detail)], 0)
            }
            submit::Refused::UnknownWorkflow => {
                Self::fields(vec![FieldError::of("workflowId", UNKNOWN_WORKFLOW, detail)], 0)
            }
            submit::Refused::WorkflowEnded => Self::new(Code::WorkflowEnded, detail),
            submit::Refused::NotStored { .. } | submit::Refused::Unreadable { .. } => {
                Self::retry(Code::StoreUnavailable, 1, detail)
            }
        }
    }
}

impl From<workflows::Error> for ApiError {
    fn from(error: workflows::Error) -> Self {
        let detail = error.to_string();
        match error {
            workflows::Error::NotFound => Self::new(Code::WorkflowNotFound, detail),
            workflows::Error::Conflict { .. } => Self::new(Code::WorkflowEnded, detail),
            workflows::Error::Store(error) => Self::from(error),
        }
    }
}

impl From<worker::Error> for ApiError {
    fn from(error: worker::Error) -> Self {
        let detail = error.to_string();
        match error {
            worker::Error::UnknownSession => Self::new(Code::SessionNotFound, detail),
            // Sessions end when their time to live is over, not within a second.
            worker::Error::TooManySessions => Self::retry(Code::TooManySessions, 10, detail),
            worker::Error::Closed => Self::shutting_down(),
            worker::Error::Store(error) => Self::from(error),
        }
    }
}

impl From<settings::Error> for ApiError {
    fn from(error: settings::Error) -> Self {
        let found = error.to_string();
        match error {
            settings::Error::VersionMismatch { .. } => {
                let detail = format!("{found}, which If-Match does not name; read them again");
                Self::new(Code::VersionMismatch, detail)
            }
            settings::Error::VersionNotFound { .. } => {
                let detail = format!("{found}; GET /settings/history lists those that are kept");
                Self::new(Code::VersionNotFound, detail)
            }
            settings::Error::Store(error) => Self::from(error),
        }
    }
}

impl From<tenants::Denied> for ApiError {
    fn from(denied: tenants::Denied) -> Self {
        let detail = denied.to_string();
        match denied {
            tenants::Denied::Suspended { .. } => Self::new(Code::TenantSuspended, detail),
            tenants::Denied::Quota(exceeded) => match exceeded.retry_after {
                Some(wait) => {
                    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                    let seconds = u16::try_from(seconds.max(1)).unwrap_or(u16::MAX);
                    Self::retry(Code::QuotaExceeded, seconds, detail)
                }
                None => Self::new(Code::TenantLimit, detail),
            },
        }
    }
}

impl From<tenants::Error> for ApiError {
    fn from(error: tenants::Error) -> Self {
        match error {
            tenants::Error::Conflict { version: Some(version) } => {
                let detail = format!("the record of this tenant is at version {version}");
                Self::new(Code::VersionMismatch, detail)
            }
            tenants::Error::Conflict { version: None } => {
                let detail = "there is no record of this tenant; leave If-Match out";
                Self::new(Code::VersionMismatch, detail)
            }
            tenants::Error::TooMany => {
                let detail = format!("{TENANTS} tenants have a record, which is the limit");
                Self::new(Code::TooLarge, detail)
            }
            tenants::Error::Store(error) => Self::from(error),
        }
    }
}

impl From<keys::Error> for ApiError {
    fn from(error: keys::Error) -> Self {
        match error {
            keys::Error::ForeignRoles | keys::Error::ForeignTenant | keys::Error::Wider => {
                Self::new(Code::Forbidden, error.to_string())
            }
            keys::Error::Store(error) => Self::from(error),
        }
    }
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::NotFound => Self::schedule_not_found(),
            ScheduleError::Conflict { version } => {
                let detail = format!("there is a schedule of this name at version {version}");
                Self::new(Code::VersionMismatch, detail)
            }
            ScheduleError::Managed => {
                let detail = "change it in the configuration file of the server";
                Self::new(Code::ScheduleManaged, detail)
            }
            ScheduleError::TooMany => {
                let detail = format!("there are {SCHEDULES} schedules; delete those without use");
                Self::new(Code::ScheduleLimit, detail)
            }
            ScheduleError::Denied(denied) => Self::from(denied),
            ScheduleError::Payload { key: None, why } => {
                Self::bad_payload("/task/payload".to_owned(), why)
            }
            ScheduleError::Payload { key: Some(key), why } => {
                Self::bad_payload(format!("/workflow/tasks/{key}/payload"), why)
            }
            ScheduleError::Damaged => {
                Self::internal("the stored definition of a schedule is damaged".to_owned())
            }
            ScheduleError::Store(error) => Self::from(error),
        }
    }
}

/// Whole seconds, at least one.
fn seconds_up(wait: Duration) -> u16 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    u16::try_from(seconds.max(1)).unwrap_or(u16::MAX)
}

/// An error and all that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text += &format!(": {error}");
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_schedules_have_codes_of_their_own() {
        for (error, code) in [
            (ScheduleError::NotFound, Code::ScheduleNotFound),
            (ScheduleError::Conflict { version: 7 }, Code::VersionMismatch),
            (ScheduleError::Managed, Code::ScheduleManaged),
            (ScheduleError::TooMany, Code::ScheduleLimit),
            (ScheduleError::Damaged, Code::Internal),
        ] {
            assert_eq!(ApiError::from(error).code(), code);
        }
    }
}
