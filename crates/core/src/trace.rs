//! Where a submit comes from, for those who follow requests through systems: the header `traceparent` of
//! W3C Trace Context.

use std::collections::BTreeMap;

/// The label that keeps the header of a task's submit.
pub const TRACE_LABEL: &str = "duly.traceparent";

/// A valid `traceparent` of version 00.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent(String);

impl TraceParent {
    /// Reads a header. One that is not valid is no error: the specification wants it ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.trim().split('-').collect();
        let [version, trace, span, flags] = parts[..] else { return None };
        let is_hex = |part: &str, length| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.len() == length && part.bytes().all(is_digit)
        };
        let is_id =
            |part: &str, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
        let is_valid = version == "00" && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2);
        is_valid.then(|| Self(text.trim().to_owned()))
    }

    /// Marks a task with it.
    pub fn mark(self, labels: &mut BTreeMap<String, String>) {
        labels.insert(TRACE_LABEL.to_owned(), self.0);
    }

    /// What a task was marked with.
    pub fn of(labels: &BTreeMap<String, String>) -> Option<&str> {
        labels.get(TRACE_LABEL).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_header_is_kept_as_it_is() {
        let mut labels = BTreeMap::new();
        assert_eq!(TraceParent::of(&labels), None);
        TraceParent::parse(VALID).unwrap().mark(&mut labels);
        assert_eq!(TraceParent::of(&labels), Some(VALID));
    }

    #[test]
    fn anything_else_is_ignored() {
        let zeros = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let no_span = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        let upper = VALID.to_uppercase();
        let later = VALID.replacen("00", "ff", 1);
        let longer = format!("{VALID}-00");
        for bad in ["", "00", "a\nb", zeros, no_span, &upper, &later, &longer, &VALID[..54]] {
            assert_eq!(TraceParent::parse(bad), None, "{bad:?}");
        }
    }
}
