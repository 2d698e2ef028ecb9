//! Randomness for production: unpredictable, and cheap enough to use for every task.

use duly_core::ports::random::Random;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};

/// A generator seeded by the operating system.
#[derive(Debug)]
pub struct OsRandom {
    generator: Mutex<StdRng>,
}

impl OsRandom {
    /// Seeds a generator.
    pub fn new() -> Self {
        Self { generator: Mutex::new(StdRng::from_os_rng()) }
    }
}

impl Default for OsRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for OsRandom {
    fn fill(&self, numbers: &mut [u64]) {
        let mut generator = self.generator.lock();
        numbers.fill_with(|| generator.next_u64());
    }
}
