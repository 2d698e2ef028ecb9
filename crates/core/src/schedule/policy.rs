//! What a schedule does with slots that come while an earlier one still runs, or come too late.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happens at a slot while the task or workflow of an earlier slot has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Overlap {
    /// The slot is skipped.
    #[default]
    Skip,
    /// The slot waits until the earlier one has ended; one at a time, others are skipped.
    BufferOne,
    /// The slot runs beside the earlier one.
    Allow,
    /// The earlier one is cancelled and the slot runs.
    CancelOther,
}

impl Overlap {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Skip, Self::BufferOne, Self::Allow, Self::CancelOther];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::BufferOne => "bufferOne",
            Self::Allow => "allow",
            Self::CancelOther => "cancelOther",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What happens to *missed* slots: those that are decided more than a minute late, because no scheduler
/// ran or the schedule was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Misfire {
    /// One missed slot runs: the newest, unless a newer slot is on time.
    #[default]
    Latest,
    /// No missed slot runs.
    Skip,
    /// All missed slots run, oldest first, up to a limit.
    All,
}

impl Misfire {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Latest, Self::Skip, Self::All];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Skip => "skip",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Misfire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a slot did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SkipReason {
    /// It was missed, and the misfire rule leaves it out.
    #[serde(rename = "MISSED")]
    Missed,
    /// It was missed by more than the catch-up time.
    #[serde(rename = "TOO_OLD")]
    TooOld,
    /// More slots were missed than may run at once, and this is not one of the last.
    #[serde(rename = "TOO_MANY")]
    TooMany,
    /// An earlier slot had not ended.
    #[serde(rename = "OVERLAP")]
    Overlap,
    /// An earlier slot had not ended, and another was already waiting for that.
    #[serde(rename = "BUFFERED")]
    Buffered,
    /// The store could not take what it would have started.
    #[serde(rename = "REFUSED")]
    Refused,
}

impl SkipReason {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Missed, Self::TooOld, Self::TooMany, Self::Overlap, Self::Buffered, Self::Refused];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missed => "MISSED",
            Self::TooOld => "TOO_OLD",
            Self::TooMany => "TOO_MANY",
            Self::Overlap => "OVERLAP",
            Self::Buffered => "BUFFERED",
            Self::Refused => "REFUSED",
        }
    }

    /// For people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missed => "The slot was missed, and the misfire rule does not make up for it.",
            Self::TooOld => "The slot was missed by more than catchUpSeconds.",
            Self::TooMany => "More slots were missed than can be caught up with; newer ones ran.",
            Self::Overlap => "The run of an earlier slot had not ended.",
            Self::Buffered => {
                "The run of an earlier slot had not ended, and another slot was already waiting."
            }
            Self::Refused => {
                "The installation holds the largest number of distinct queue and type pairs."
            }
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Serialize) -> String {
        serde_json::to_string(&value).unwrap()
    }

    #[test]
    fn words_are_the_same_in_json_and_in_text() {
        for overlap in Overlap::ALL {
            assert_eq!(json(overlap), format!("\"{overlap}\""));
        }
        for misfire in Misfire::ALL {
            assert_eq!(json(misfire), format!("\"{misfire}\""));
        }
        for reason in SkipReason::ALL {
            assert_eq!(json(reason), format!("\"{reason}\""));
            assert!(reason.sentence().ends_with('.'));
        }
    }
}
