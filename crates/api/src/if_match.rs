//! The headers `If-Match` and `If-None-Match`: which version a change is based on. And `ETag`, which
//! tells callers the version.

use axum::Json;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use duly_core::ports::store::Expected;
use serde::Serialize;

use crate::error::{ApiError, Code};
use crate::query::invalid;

/// The version that the header names; nothing for `*`, which stands for any.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let mut values = headers.get_all(IF_MATCH).iter();
    let Some(value) = values.next() else {
        let detail = "send the version that your change is based on as `If-Match: \"7\"`, from \
                      the header ETag of what you have read, or `If-Match: *` for any";
        return Err(ApiError::new(Code::IfMatchRequired, detail));
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none()).map(str::trim);
    match text {
        Some("*") => Ok(None),
        text => text
            .and_then(version)
            .map(Some)
            .ok_or_else(|| invalid("the header If-Match must be one version, such as \"7\", or *")),
    }
}

/// The version that `If-Match` asks for, where the header may be left out.
pub(crate) fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
    if !headers.contains_key(IF_MATCH) {
        return Ok(Expected::Any);
    }
    Ok(read(headers)?.map_or(Expected::Any, Expected::Version))
}

/// What a change of something that has a name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing.
    None,
    /// `If-None-Match: *`: there is none of this name.
    Absent,
    /// `If-Match: *`: there is one.
    Present,
    /// `If-Match: "7"`: it has this version.
    Version(u64),
}

/// The condition of a change; both headers may be left out.
pub(crate) fn condition(headers: &HeaderMap) -> Result<Condition, ApiError> {
    let absent = match headers.get(IF_NONE_MATCH) {
        None => false,
        Some(value) if value == "*" => true,
        Some(_) => return Err(invalid("the header If-None-Match must be *")),
    };
    match (headers.contains_key(IF_MATCH), absent) {
        (true, true) => Err(invalid("give If-Match or If-None-Match, not both")),
        (true, false) => Ok(read(headers)?.map_or(Condition::Present, Condition::Version)),
        (false, true) => Ok(Condition::Absent),
        (false, false) => Ok(Condition::None),
    }
}

/// An answer with the version of what it shows.
pub(crate) fn versioned(status: StatusCode, version: u64, body: impl Serialize) -> Response {
    let tag = HeaderValue::try_from(format!("\"{version}\"")).expect("a number fits a header");
    (status, [(ETAG, tag)], Json(body)).into_response()
}

fn version(text: &str) -> Option<u64> {
    let bare = match text.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => text,
    };
    // No sign and no empty text, which `parse` would take or turn into another error.
    bare.bytes().all(|byte| byte.is_ascii_digit()).then(|| bare.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(values: &[&'static str]) -> Result<Option<u64>, Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::from_static(value));
        }
        read(&headers).map_err(|error| error.code())
    }

    fn condition_of(headers: &[(&'static str, &'static str)]) -> Result<Condition, Code> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        let headers = headers.iter().map(pair).collect();
        condition(&headers).map_err(|error| error.code())
    }

    #[test]
    fn a_change_may_have_one_condition() {
        assert_eq!(condition_of(&[]), Ok(Condition::None));
        assert_eq!(condition_of(&[("if-match", "*")]), Ok(Condition::Present));
        assert_eq!(condition_of(&[("if-match", "\"7\"")]), Ok(Condition::Version(7)));
        assert_eq!(condition_of(&[("if-none-match", "*")]), Ok(Condition::Absent));
        for bad in [
            &[("if-match", "x")][..],
            &[("if-none-match", "\"7\"")],
            &[("if-none-match", "*"), ("if-match", "*")],
        ] {
            assert_eq!(condition_of(bad), Err(Code::InvalidParameter), "{bad:?}");
        }
    }

    #[test]
    fn one_version_or_any() {
        assert_eq!(read_all(&["\"7\""]), Ok(Some(7)));
        assert_eq!(read_all(&["7"]), Ok(Some(7)));
        assert_eq!(read_all(&["*"]), Ok(None));
        assert_eq!(read_all(&[]), Err(Code::IfMatchRequired));
        for bad in ["", "\"\"", "\"7", "+7", "-1", "\"x\"", "W/\"7\"", "\"1\", \"2\"", "1e3"] {
            assert_eq!(read_all(&[bad]), Err(Code::InvalidParameter), "{bad}");
        }
        assert_eq!(read_all(&["18446744073709551616"]), Err(Code::InvalidParameter));
        assert_eq!(read_all(&["\"7\"", "\"7\""]), Err(Code::InvalidParameter));
    }
}
