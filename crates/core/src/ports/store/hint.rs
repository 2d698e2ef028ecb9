//! Wake-ups: news that something can be claimed.

use std::collections::BTreeSet;

use super::OpenSession;
use crate::limits::HINT_LANES;
use crate::name::Lane;
use crate::time::Timestamp;

/// Something can be claimed from a time on. A hint may be lost, or be wrong in its favour: it costs
/// a look, and nothing depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// From when on.
    pub due: Timestamp,
    /// In which lanes; nothing stands for any.
    pub lanes: Option<BTreeSet<Lane>>,
}

impl Hint {
    /// Something is due in some lane.
    pub fn anywhere(due: Timestamp) -> Self {
        Self { due, lanes: None }
    }

    /// Both at once. Many lanes become any, so that telling whom it concerns stays cheap.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let lanes = match (self.lanes, other.lanes) {
            (Some(mut lanes), Some(more)) => {
                lanes.extend(more);
                Some(lanes).filter(|lanes| lanes.len() <= HINT_LANES)
            }
            (None, _) | (_, None) => None,
        };
        Self { due: self.due.min(other.due), lanes }
    }

    /// Whether a session may be granted what was hinted at.
    pub fn concerns(&self, session: &OpenSession) -> bool {
        let lanes = self.lanes.as_ref();
        lanes.is_none_or(|lanes| lanes.iter().any(|lane| session.serves(lane)))
    }
}
