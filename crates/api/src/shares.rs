//! Shares of something of which there is only so much: each holder has so many at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many shares each holder has.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    /// The most of one holder; 0 for any number.
    most: usize,
    taken: Mutex<HashMap<K, usize>>,
}

/// One share, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    shares: Arc<Shares<K>>,
    holder: K,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// One more share for a holder, if it has not too many.
    pub(crate) fn take(self: &Arc<Self>, holder: K) -> Option<Share<K>> {
        let mut taken = self.taken.lock();
        let count = taken.entry(holder.clone()).or_default();
        if self.most > 0 && *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share { shares: Arc::clone(self), holder })
    }

    /// How many holders have shares.
    #[cfg(test)]
    pub(crate) fn holders(&self) -> usize {
        self.taken.lock().len()
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}
