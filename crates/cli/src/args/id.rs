//! Task ids on the command line.

use std::fmt;
use std::str::FromStr;

/// The shortest id prefix that the server looks up. An id begins with its due time, so a shorter
/// prefix rarely identifies one task.
const SHORTEST: usize = 13;
const WHOLE: usize = 36;

/// A task's id or a prefix of it; the server resolves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRef(String);

/// The text is not a task id or prefix.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a task id such as 01920000-0000-7000-8000-000000000000, nor a prefix of {SHORTEST} or more \
     characters"
)]
pub(crate) struct InvalidTaskId;

impl FromStr for TaskRef {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        let fits = |(at, byte): (usize, u8)| match byte {
            b'-' => is_hyphen(at),
            byte => byte.is_ascii_hexdigit() && !is_hyphen(at),
        };
        let is_prefix =
            (SHORTEST..=WHOLE).contains(&text.len()) && text.bytes().enumerate().all(fits);
        if is_prefix { Ok(Self(text.to_owned())) } else { Err(InvalidTaskId) }
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_or_its_beginning_names_a_task() {
        let id = "01920000-0000-7000-8000-00000000000A";
        for length in [13, 14, 20, 35, 36] {
            assert_eq!(id[..length].parse::<TaskRef>().unwrap().to_string(), id[..length]);
        }
        let longer = format!("{id}0");
        for text in ["", &id[..12], &longer, "0192000000007", "01920000-0000x7000", "not-an-id-not"]
        {
            assert_eq!(text.parse::<TaskRef>(), Err(InvalidTaskId), "{text}");
        }
    }
}
