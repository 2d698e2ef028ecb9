//! Why a request was refused: RFC 9457 problem details with a stable code.

use std::fmt;

use duly_core::id::TaskId;
use serde::{Deserialize, Serialize};

/// Why a request was refused (`application/problem+json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = problem_example))]
pub struct Problem {
    /// `urn:duly:error:` and the code.
    pub r#type: String,
    /// What the code means, the same for every such problem.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable, upper-case reason for programs.
    pub code: String,
    /// What is wrong with this very request and what to do about it.
    pub detail: String,
    /// Also in the header `X-Request-Id` and in the server's log; absent inside a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What is wrong field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// Ids that the one in the path may stand for, at most 10; with `AMBIGUOUS_ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub candidates: Vec<TaskId>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProblemField {
    /// JSON pointer (RFC 6901) into the body.
    #[cfg_attr(feature = "openapi", schema(example = "/priority"))]
    pub pointer: String,
    /// Stable, upper-case reason for programs.
    #[cfg_attr(feature = "openapi", schema(example = "OUT_OF_RANGE"))]
    pub code: String,
    /// For people.
    #[cfg_attr(feature = "openapi", schema(example = "must be a whole number from 0 to 9"))]
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)?;
        // The detail repeats the first of them.
        for error in self.errors.iter().filter(|error| !self.detail.contains(&error.detail)) {
            write!(f, "\n  {}: {} ({})", error.pointer, error.detail, error.code)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, "\n  request id: {id}")?;
        }
        Ok(())
    }
}

#[cfg(feature = "openapi")]
fn problem_example() -> serde_json::Value {
    serde_json::json!({
        "type": "urn:duly:error:INVALID_FIELDS", "title": "Some fields are not valid",
        "status": 422, "code": "INVALID_FIELDS",
        "detail": "/priority: must be a whole number from 0 to 9",
        "requestId": "5f3a9c21-2a",
        "errors": [{
            "pointer": "/priority", "code": "OUT_OF_RANGE",
            "detail": "must be a whole number from 0 to 9"
        }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_detail_says_is_not_said_twice() {
        let field = |pointer: &str, detail: &str| ProblemField {
            pointer: pointer.to_owned(),
            code: "OUT_OF_RANGE".to_owned(),
            detail: detail.to_owned(),
        };
        let problem = Problem {
            r#type: "urn:duly:error:INVALID_FIELDS".to_owned(),
            title: "Some fields are not valid".to_owned(),
            status: 422,
            code: "INVALID_FIELDS".to_owned(),
            detail: "/priority: must be 0 to 9 (and 1 more)".to_owned(),
            request_id: None,
            errors: vec![field("/priority", "must be 0 to 9"), field("/retries", "too many")],
            candidates: Vec::new(),
        };
        assert_eq!(
            problem.to_string(),
            "/priority: must be 0 to 9 (and 1 more) (INVALID_FIELDS)\n  \
             /retries: too many (OUT_OF_RANGE)"
        );
    }
}
