//! Histories that are right by construction are judged valid, and each becomes invalid by one
//! change that is wrong by construction.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::generate::history;
use crate::mutate::MUTATIONS;

/// How many histories are changed.
const HISTORIES: u32 = 800;
/// How many changes must have been caught in all.
const CHANGES: usize = 10_000;
/// How many of each kind.
const CHANGES_OF_A_KIND: usize = 100;

#[test]
fn every_change_of_a_valid_history_is_caught_for_what_it_is() {
    let config = Config { cases: HISTORIES, failure_persistence: None, ..Config::default() };
    let mut caught: BTreeMap<&str, usize> = BTreeMap::new();
    let counts = std::cell::RefCell::new(&mut caught);
    let seeds = (any::<u64>(), 1_usize..16);
    let tried = TestRunner::new(config).run(&seeds, |(seed, tasks)| {
        for name in try_all(seed, tasks)? {
            *counts.borrow_mut().entry(name).or_default() += 1;
        }
        Ok(())
    });
    tried.unwrap();
    let total: usize = caught.values().sum();
    assert!(total >= CHANGES, "only {total} changes: {caught:?}");
    let enough = |(name, _): &(&str, _)| caught.get(name).is_some_and(|n| *n >= CHANGES_OF_A_KIND);
    assert!(MUTATIONS.iter().all(enough), "{caught:?}");
}

/// Judges a history, and then each change that can be made to it; the names of those.
fn try_all(seed: u64, tasks: usize) -> Result<Vec<&'static str>, TestCaseError> {
    let valid = history(seed, tasks);
    let (findings, _) = valid.judge();
    prop_assert!(findings.is_empty(), "valid, and yet {:#?}", findings.first());
    let mut caught = Vec::new();
    for (name, mutate) in MUTATIONS {
        let mut changed = valid.clone();
        let mut random = StdRng::seed_from_u64(seed);
        let Some(class) = mutate(&mut changed, &mut random) else { continue };
        let (findings, _) = changed.judge();
        let classes = findings.classes();
        prop_assert!(classes.contains(&class), "{name} is {class:?}, and found was {classes:?}");
        caught.push(name);
    }
    Ok(caught)
}
