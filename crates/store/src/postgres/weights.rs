//! Whether claims look at the sizes of payloads before they take them. Mostly all are small, and it
//! is found out afterwards that they were not; after that they are looked at for a while.

use std::sync::atomic::{AtomicU32, Ordering};

/// So many claims in a row have to be light before they are trusted again.
const LIGHT: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Weights {
    /// Claims that are still looked at.
    watched: AtomicU32,
}

impl Weights {
    /// Whether heavy payloads were among the last ones.
    pub(super) fn are_mixed(&self) -> bool {
        self.watched.load(Ordering::Relaxed) > 0
    }

    /// A claim was granted something, with heavy payloads or without.
    pub(super) fn note(&self, heavy: bool) {
        let next = |watched: u32| Some(if heavy { LIGHT } else { watched.saturating_sub(1) });
        let _ = self.watched.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_heavy_one_many_light_ones_have_to_come() {
        let weights = Weights::default();
        assert!(!weights.are_mixed());
        weights.note(true);
        for _ in 0..LIGHT {
            assert!(weights.are_mixed());
            weights.note(false);
        }
        assert!(!weights.are_mixed());
        weights.note(false);
        assert!(!weights.are_mixed());
    }
}
