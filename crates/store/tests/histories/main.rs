//! Random histories of all commands, in the reference model and in a store: every answer and, after
//! every step, everything stored is the same. A difference is a bug in one of them; it is fixed
//! together with a case of the conformance suite, so that every other store inherits it.
//!
//! The histories are the same in every run, so that the same code gets the same verdict.
//! `PROPTEST_RNG_SEED` selects other ones, and `PROPTEST_CASES` sets their number; `make soak` uses
//! both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod call;
mod events;
mod known;
mod meaning;
mod reading;
mod schedules;
mod step;
mod strategy;
mod subject;
mod tally;
mod world;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use duly_store::postgres::scratch;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine as _, StateMachineTest};
use tokio::runtime::Runtime;

use crate::step::Step;
use crate::strategy::Steps;
use crate::subject::{Postgres, Sqlite, Subject};
use crate::tally::Tally;
use crate::world::World;

const SEED: u64 = 2027;
const STEPS: RangeInclusive<usize> = 40..=60;
/// One for each core of a small machine.
const THREADS: u32 = 2;

/// By the store.
static TALLIES: Mutex<BTreeMap<&str, Tally>> = Mutex::new(BTreeMap::new());

thread_local! {
    static RUNTIME: Runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
}

struct Histories<S>(PhantomData<S>);

impl<S: Subject> StateMachineTest for Histories<S> {
    type SystemUnderTest = World<S>;
    type Reference = Steps;

    fn init_test((): &()) -> World<S> {
        RUNTIME.with(|runtime| runtime.block_on(World::new()))
    }

    fn apply(mut world: World<S>, (): &(), step: Step) -> World<S> {
        RUNTIME.with(|runtime| runtime.block_on(world.take(step)));
        world
    }

    fn teardown(mut world: World<S>, (): ()) {
        RUNTIME.with(|runtime| runtime.block_on(world.leave()));
        world.tally.cases = 1;
        let mut tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.entry(S::NAME).or_default().add(&world.tally);
    }
}

fn run<S: Subject>(config: &Config) {
    let histories = Steps::sequential_strategy(STEPS);
    let outcome = TestRunner::new(config.clone()).run(&histories, |((), steps, seen)| {
        Histories::<S>::test_sequential(config.clone(), (), steps, seen);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("seed {}: {failure}", config.rng_seed);
    }
}

/// The number that proptest takes when `PROPTEST_CASES` is not set.
const UNSET: u32 = 256;

/// Compares this many histories, unless `PROPTEST_CASES` is set.
fn compare<S: Subject>(histories: u32) -> Tally {
    let start = Instant::now();
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => SEED,
    };
    let histories = match Config::default().cases {
        UNSET => histories,
        set => set,
    };
    let config = |thread: u32| Config {
        cases: histories.div_ceil(THREADS),
        rng_seed: RngSeed::Fixed(seed.wrapping_add(thread.into())),
        failure_persistence: None,
        max_shrink_iters: 5000,
        ..Config::default()
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || run::<S>(&config(thread)));
        }
    });
    let mut tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
    let tally = tallies.remove(S::NAME).unwrap_or_default();
    // Not by a macro: those are silent while a test passes.
    let (name, seconds) = (S::NAME, start.elapsed().as_secs_f64());
    drop(writeln!(std::io::stderr().lock(), "{name}, seed {seed}, {seconds:.1} s, {tally}"));
    tally
}

#[test]
fn sqlite_does_what_the_model_does() {
    compare::<Sqlite>(600).check();
}

/// Fewer, since each call of a server takes longer.
#[test]
fn postgres_does_what_the_model_does() {
    if scratch::server().is_some() {
        compare::<Postgres>(80).check();
    }
}
