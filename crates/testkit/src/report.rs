//! What a test tells the person who runs it, and what it needs of the machine.

use std::io::Write as _;

use anyhow::bail;
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};

/// Says one line, also when the test passes.
pub fn say(line: &str) {
    // The test runner keeps what goes through `println!` to itself; a figure is for reading.
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}

/// Something this machine lacks: a test that needs it is skipped, aloud, unless everything must
/// run.
pub fn skip(missing: &str, remedy: &str) -> anyhow::Result<()> {
    if is_set("CI") || is_set("DULY_REQUIRE_ALL") {
        bail!("{missing}; {remedy}");
    }
    say(&format!("SKIPPED: {missing}"));
    Ok(())
}

/// A generator whose seed is told; `DULY_SEED` repeats an earlier run.
pub fn seeded(test: &str) -> anyhow::Result<StdRng> {
    let seed = match variable("DULY_SEED") {
        Some(text) => text.parse()?,
        None => StdRng::from_os_rng().next_u64(),
    };
    say(&format!("{test}: DULY_SEED={seed}"));
    Ok(StdRng::seed_from_u64(seed))
}

/// A number from the environment, for who wants more than a test does by itself.
pub fn number(name: &str, or: usize) -> anyhow::Result<usize> {
    variable(name).map_or(Ok(or), |text| Ok(text.parse()?))
}

fn is_set(name: &str) -> bool {
    variable(name).is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

#[expect(clippy::disallowed_methods, reason = "the one place where tests ask the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
