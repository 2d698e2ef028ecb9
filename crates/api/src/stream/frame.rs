//! The text of server-sent events.

use bytes::Bytes;
use duly_core::event::Position;
use serde::Serialize;

/// The message of one event of the full stream: one name for all kinds, so that a browser needs one
/// listener.
pub(super) const EVENT: &str = "event";

/// How soon a browser connects again, in milliseconds.
const RETRY: u32 = 1000;

/// Some messages and comments, to be sent at once.
#[derive(Debug, Default)]
pub(super) struct Frame(Vec<u8>);

impl Frame {
    /// How a stream begins: with the place from which a client resumes that has seen nothing yet.
    pub(super) fn opening(place: Option<&Position>) -> Bytes {
        let mut frame = Self::default();
        frame.line("retry", &RETRY.to_string());
        frame.end(place)
    }

    /// What shows that the stream is alive.
    pub(super) fn heartbeat(place: Option<&Position>) -> Bytes {
        Self(b": heartbeat\n".to_vec()).end(place)
    }

    /// One message.
    pub(super) fn message(name: &str, data: &impl Serialize) -> Bytes {
        let mut frame = Self::default();
        frame.push(name, None, data);
        frame.into()
    }

    /// Adds a message, with its place in the full stream if it is of it.
    pub(super) fn push(&mut self, name: &str, place: Option<&Position>, data: &impl Serialize) {
        self.line("event", name);
        if let Some(place) = place {
            self.line("id", &place.to_string());
        }
        self.0.extend_from_slice(b"data: ");
        let start = self.0.len();
        serde_json::to_writer(&mut self.0, data).expect("wire types can always be written as JSON");
        // Results are as handlers wrote them, perhaps over several lines. Within JSON text, the ends of lines
        // are nothing but space.
        for byte in &mut self.0[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.0.extend_from_slice(b"\n\n");
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn line(&mut self, field: &str, value: &str) {
        for part in [field, ": ", value, "\n"] {
            self.0.extend_from_slice(part.as_bytes());
        }
    }

    /// Ends a block without data, which is no message.
    fn end(mut self, place: Option<&Position>) -> Bytes {
        if let Some(place) = place {
            self.line("id", &place.to_string());
        }
        self.0.push(b'\n');
        self.into()
    }
}

impl From<Frame> for Bytes {
    fn from(frame: Frame) -> Self {
        frame.0.into()
    }
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_message_is_one_block_whatever_its_data_is() {
        let data: Box<RawValue> = serde_json::from_str("{\"a\":\r\n[1,\n\"x\\n\"]}").unwrap();
        let place = Position { view: "1:2:".into(), at: Timestamp::EPOCH, number: 7, index: 2 };
        let mut frame = Frame::default();
        frame.push(EVENT, Some(&place), &data);
        let expected = "event: event\nid: 0.7.2.1:2:\ndata: {\"a\":  [1, \"x\\n\"]}\n\n";
        assert_eq!(Bytes::from(frame), expected);
        assert_eq!(Frame::message("stats", &1), "event: stats\ndata: 1\n\n");
        assert_eq!(Frame::heartbeat(Some(&place)), ": heartbeat\nid: 0.7.2.1:2:\n\n");
        assert_eq!(Frame::opening(None), "retry: 1000\n\n");
    }
}
