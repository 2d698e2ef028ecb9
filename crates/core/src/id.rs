//! Identifiers. A task's id carries its first due time, so that what runs on a day lies together
//! in every store; see [`TaskId::mint`].

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::time::Timestamp;

/// Names one task for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Uuid);

/// Names one run of one worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

/// Names one process that has the store open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Uuid);

/// Names one workflow for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkflowId(Uuid);

/// Names one schedule for ever: one that is deleted and made again under its old name is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScheduleId(Uuid);

/// Names one API key for ever. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(Uuid);

/// The text is not a UUID.
#[derive(Debug, thiserror::Error)]
#[error("not a UUID, such as 01920000-0000-7000-8000-000000000000")]
pub struct NotAnId;

/// Bits of an id that count up within one minting process.
const ORDINAL_BITS: u32 = 20;
/// Characters that the beginning of an id must have to stand for it: the time, to the millisecond.
pub const PREFIX_CHARS: usize = 13;

impl TaskId {
    /// Makes a UUIDv7 whose time is the task's first due time.
    ///
    /// `ordinal` counts the ids of one process: its low 20 bits follow the time, so that tasks
    /// submitted one after the other for the same millisecond also sort that way. The other 54
    /// bits are random and keep processes apart.
    pub fn mint(first_due: Timestamp, ordinal: u32, random: u64) -> Self {
        let ordinal = u64::from(ordinal) & ((1 << ORDINAL_BITS) - 1);
        let millis = u64::try_from(first_due.millis()).expect("instants start in 1970");
        let high = (millis << 16) | 0x7000 | (ordinal >> 8);
        let low = (0b10 << 62) | ((ordinal & 0xff) << 54) | (random & ((1 << 54) - 1));
        Self(Uuid::from_u64_pair(high, low))
    }

    /// The lowest id that a task first due then could have.
    pub fn first_of(due: Timestamp) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&due.millis().to_be_bytes()[2..]);
        Self::from_bytes(bytes)
    }

    /// The ids whose text begins like this, in upper or lower case. Nothing if it is shorter than
    /// [`PREFIX_CHARS`], no beginning of an id, or a whole one.
    pub fn starting_with(prefix: &str) -> Option<RangeInclusive<Self>> {
        const SHAPE: &str = "00000000-0000-0000-0000-000000000000";
        if !(PREFIX_CHARS..SHAPE.len()).contains(&prefix.len()) {
            return None;
        }
        let fits = |(found, wanted): (u8, u8)| match wanted {
            b'-' => found == b'-',
            _ => found.is_ascii_hexdigit(),
        };
        prefix.bytes().zip(SHAPE.bytes()).all(fits).then_some(())?;
        let rest = SHAPE.get(prefix.len()..)?;
        let first = format!("{prefix}{rest}").parse().ok()?;
        let last = format!("{prefix}{}", rest.replace('0', "f")).parse().ok()?;
        Some(first..=last)
    }

    /// The first due time written into the id. A caller may name any UUID: one with a time after
    /// 9999 has the last instant.
    pub fn first_due(self) -> Timestamp {
        let millis = self.0.as_u64_pair().0 >> 16;
        Timestamp::clamped(i64::try_from(millis).expect("48 bits fit"))
    }
}

impl SessionId {
    /// Makes a UUIDv7 from the time the session opened.
    pub fn mint(now: Timestamp, random: u64) -> Self {
        Self(TaskId::mint(now, 0, random).0)
    }

    /// The same with a mark of the caller who opens it, so that every node can tell whose it is. A
    /// caller cannot choose by which name it is known, so it cannot search for one whose mark fits.
    pub fn mint_for(owner: &str, now: Timestamp, random: u64) -> Self {
        let ordinal = u32::try_from(random >> 44).expect("20 bits fit");
        let mut bytes = *TaskId::mint(now, ordinal, random).as_bytes();
        let mark = owner_mark(&bytes, owner);
        bytes[OWNER_MARK].copy_from_slice(&mark);
        Self::from_bytes(bytes)
    }

    /// Whether this caller opened it.
    pub fn is_of(&self, owner: &str) -> bool {
        let bytes = self.as_bytes();
        bytes[OWNER_MARK] == owner_mark(bytes, owner)
    }
}

/// Where the id of a session has the mark of who opened it.
const OWNER_MARK: Range<usize> = 12..16;

fn owner_mark(id: &[u8; 16], owner: &str) -> [u8; 4] {
    let hash = Sha256::new().chain_update(&id[..OWNER_MARK.start]).chain_update(owner).finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

impl WorkflowId {
    /// Makes a UUIDv7 from the time of the submit.
    pub fn mint(now: Timestamp, ordinal: u32, random: u64) -> Self {
        Self(TaskId::mint(now, ordinal, random).0)
    }
}

impl ScheduleId {
    /// Makes a UUIDv7 from the time the schedule was created.
    pub fn mint(now: Timestamp, random: u64) -> Self {
        Self(TaskId::mint(now, 0, random).0)
    }
}

impl KeyId {
    /// Makes a UUIDv7 from the time the key was created.
    pub fn mint(now: Timestamp, random: u64) -> Self {
        Self(TaskId::mint(now, 0, random).0)
    }
}

impl NodeId {
    /// The one that has a store open which only one process can open.
    pub const ONLY: Self = Self(Uuid::nil());
}

macro_rules! uuid_id {
    ($name:ident) => {
        impl $name {
            /// The id's sixteen bytes, as stores keep it.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id with these bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                // Only the hyphenated form: one task has one spelling in URLs, logs and caches.
                match Uuid::try_parse(text) {
                    Ok(id) if text.len() == 36 => Ok(Self(id)),
                    _ => Err(NotAnId),
                }
            }
        }
    };
}

uuid_id!(TaskId);
uuid_id!(SessionId);
uuid_id!(NodeId);
uuid_id!(WorkflowId);
uuid_id!(ScheduleId);
uuid_id!(KeyId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s09_a_session_is_of_the_caller_who_opened_it() {
        for random in [0, 1, u64::MAX] {
            let now = Timestamp::from_millis(1_900_000_000_123);
            let id = SessionId::mint_for("key:a", now, random);
            assert!(id.is_of("key:a") && !id.is_of("key:b") && !id.is_of(""));
            assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
            assert_eq!(id.to_string().as_bytes()[14], b'7');
        }
        assert!(!SessionId::mint(Timestamp::EPOCH, 7).is_of("key:a"));
    }

    #[test]
    fn an_id_carries_its_due_time_and_is_a_version_7_uuid() {
        let due = Timestamp::from_millis(1_900_000_000_123);
        let id = TaskId::mint(due, 7, u64::MAX);
        assert_eq!(id.first_due(), due);
        assert_eq!(id.0.get_version_num(), 7);
        assert_eq!(id.0.get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn a_beginning_stands_for_a_range() {
        let id = TaskId::mint(Timestamp::from_millis(1_900_000_000_123), 7, 9);
        let text = id.to_string();
        for length in PREFIX_CHARS..text.len() {
            for prefix in [text[..length].to_owned(), text[..length].to_uppercase()] {
                let range = TaskId::starting_with(&prefix).unwrap();
                assert!(range.contains(&id), "{prefix}");
                assert_eq!(range.start().first_due(), id.first_due(), "{prefix}");
                assert_eq!(range.end().first_due(), id.first_due(), "{prefix}");
            }
        }
        let last = TaskId::starting_with(&text[..35]).unwrap();
        assert_eq!(last.start().as_bytes()[..15], last.end().as_bytes()[..15]);
    }

    #[test]
    fn what_is_no_beginning_stands_for_nothing() {
        let text = TaskId::mint(Timestamp::from_millis(1_900_000_000_123), 7, 9).to_string();
        let (short, bare) = (&text[..PREFIX_CHARS - 1], text.replace('-', ""));
        let spaced = format!("{} ", &text[..PREFIX_CHARS]);
        for bad in ["", "0", short, &text, &bare, &spaced, "ä0000000-0000", "0000000-00000-"] {
            assert!(TaskId::starting_with(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn any_uuid_has_a_due_time() {
        let last = TaskId::from_bytes([0xff; 16]).first_due();
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(TaskId::from_bytes([0; 16]).first_due(), Timestamp::EPOCH);
    }

    #[test]
    fn ids_of_one_time_are_told_from_those_before() {
        let due = Timestamp::from_millis(1_900_000_000_123);
        let before = TaskId::mint(Timestamp::from_millis(due.millis() - 1), u32::MAX, u64::MAX);
        assert!(before < TaskId::first_of(due) && TaskId::first_of(due) < TaskId::mint(due, 0, 0));
    }

    #[test]
    fn ids_of_one_millisecond_sort_in_the_order_they_were_minted() {
        let due = Timestamp::from_millis(1_900_000_000_123);
        let ids: Vec<_> = (0..5000).map(|n| TaskId::mint(due, n, u64::from(n) * 77)).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn text_round_trips_and_other_spellings_are_refused() {
        let id = TaskId::mint(Timestamp::from_millis(1), 2, 3);
        assert_eq!(id.to_string().parse::<TaskId>().unwrap(), id);
        for text in ["", "x", &id.to_string()[1..], &id.to_string().replace('-', "")] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }
}
