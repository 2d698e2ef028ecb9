//! One id per request, in the answer, in every problem and in the log: the caller's own if it is
//! harmless, else one that is unique over processes without a clock or a random number.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The most characters taken from a caller.
const MAX_CHARS: usize = 128;

/// The id of a request, among its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) HeaderValue);

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().expect("an id is plain ASCII")
    }
}

/// Numbers the requests of one process.
pub(crate) struct RequestIds {
    instance: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(instance: u64) -> Self {
        Self { instance, count: AtomicU64::new(0) }
    }

    /// The id of a request with these headers.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let mut given = headers.get_all(HEADER).iter();
        match (given.next(), given.next()) {
            (Some(given), None) if is_harmless(given.as_bytes()) => given.clone(),
            _ => {
                let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
                let text = format!("{:08x}-{count:x}", self.instance);
                HeaderValue::try_from(text).expect("hexadecimal digits fit a header")
            }
        }
    }
}

/// The id is logged and echoed, so nothing that could break a log line or a terminal is taken.
fn is_harmless(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_CHARS).contains(&id.len()) && id.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(id: &str) -> HeaderMap {
        HeaderMap::from_iter([(HEADER, HeaderValue::from_str(id).unwrap())])
    }

    #[test]
    fn a_harmless_id_is_kept_and_any_other_replaced() {
        let ids = RequestIds::new(0xabc);
        assert_eq!(ids.of(&given("a.B_9-z")), "a.B_9-z");
        for (n, bad) in ["", "a b", "a\"b", "<x>", &"x".repeat(129)].into_iter().enumerate() {
            assert_eq!(ids.of(&given(bad)), format!("00000abc-{:x}", n + 1), "{bad}");
        }
    }
}
