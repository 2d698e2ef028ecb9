//! Finds the strings in JSON text that are values, and where they stand.

use std::ops::Range;

/// An object or array that is being walked through.
#[derive(Debug)]
struct Frame {
    is_object: bool,
    /// Items that came before, of an array.
    index: usize,
    /// The text of the last key, of an object.
    key: Range<usize>,
}

/// Walks through text that is known to be JSON.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    frames: Vec<Frame>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, frames: Vec::new() }
    }

    /// The next string that is a value, with its quotation marks.
    pub(super) fn next_value(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'{' | b'[' => {
                    let is_object = *byte == b'{';
                    self.frames.push(Frame { is_object, index: 0, key: 0..0 });
                }
                b'}' | b']' => {
                    self.frames.pop();
                }
                b',' => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.index += 1;
                    }
                }
                b'"' => {
                    let token = self.at..self.string_end();
                    self.at = token.end;
                    if !self.is_key(&token) {
                        return Some(token);
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn string_end(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        bytes.len()
    }

    /// Whether the string is a name in an object, which is then noted.
    fn is_key(&mut self, token: &Range<usize>) -> bool {
        let is_key = self.text[token.end..].trim_start().starts_with(':');
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.is_object && is_key) {
            frame.key = token.clone();
            return true;
        }
        false
    }

    /// A JSON pointer to the string that was found last.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.frames {
            pointer.push('/');
            if frame.is_object {
                let key = self.text.get(frame.key.clone()).unwrap_or_default();
                let key: String = serde_json::from_str(key).unwrap_or_default();
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            } else {
                pointer.push_str(&frame.index.to_string());
            }
        }
        pointer
    }
}
