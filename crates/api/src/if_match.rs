//! The header `If-Match`: which version a change is based on.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

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
    use axum::http::HeaderValue;

    use super::*;

    fn read_all(values: &[&'static str]) -> Result<Option<u64>, Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::from_static(value));
        }
        read(&headers).map_err(|error| error.code())
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
