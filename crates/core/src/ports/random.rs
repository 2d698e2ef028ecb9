//! Randomness.

/// Draws random numbers: unpredictable in production, from a seed in tests.
pub trait Random: Send + Sync {
    /// Fills the slice.
    fn fill(&self, numbers: &mut [u64]);

    /// Draws one number.
    fn next(&self) -> u64 {
        let mut number = [0];
        self.fill(&mut number);
        number[0]
    }
}
