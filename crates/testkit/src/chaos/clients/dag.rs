//! Random workflows: tasks with edges from earlier to later ones.

use std::ops::RangeInclusive;

use duly_core::workflow::Condition;
use rand::Rng as _;
use rand::rngs::StdRng;

/// How many tasks a workflow has.
pub(super) const TASKS: RangeInclusive<usize> = 2..=50;
/// Parents that a task of a mixed workflow has at most.
const PARENTS: usize = 4;
/// Tasks that fail at first, and tasks that fail until they may not be tried again, out of a
/// thousand.
const FAILING: u32 = 100;
const HOPELESS: u32 = 30;
/// Tasks that wait after their release, out of a thousand, and how many milliseconds.
const DELAYED: u32 = 100;
const DELAY: std::ops::Range<u32> = 20..400;
/// How long a task works, in milliseconds.
const WORK: RangeInclusive<u64> = 0..=20;

/// The form of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Each task waits for the one before it.
    Chain,
    /// All wait for the first one, and the last one waits for all.
    Diamond,
    /// The last one waits for all others, which wait for none.
    Funnel,
    /// Each waits for some that come before it.
    Mixed,
}

/// A task of a random workflow.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The earlier tasks that it waits for, by their places, and how each must end.
    pub(super) needs: Vec<(usize, Condition)>,
    /// How long it works, in milliseconds.
    pub(super) ms: u64,
    /// How often it fails.
    pub(super) failures: u32,
    /// How often it may be tried again.
    pub(super) retries: u32,
    /// How long it waits after its release.
    pub(super) delay_seconds: Option<f64>,
}

/// Draws a workflow.
pub(super) fn draw(random: &mut StdRng) -> Vec<Node> {
    let count = random.random_range(TASKS);
    let shape = shape(random.random_range(0..1_000));
    (0..count).map(|place| node(random, shape, place, count)).collect()
}

fn shape(number: u32) -> Shape {
    match number {
        0..100 => Shape::Chain,
        100..250 => Shape::Diamond,
        250..400 => Shape::Funnel,
        _ => Shape::Mixed,
    }
}

fn node(random: &mut StdRng, shape: Shape, place: usize, count: usize) -> Node {
    let happens = |random: &mut StdRng, per_mille| random.random_range(0..1_000) < per_mille;
    let (failures, retries) = if happens(random, HOPELESS) {
        (u32::MAX, random.random_range(0..=1))
    } else {
        (u32::from(happens(random, FAILING)), 3)
    };
    let is_delayed = happens(random, DELAYED);
    let delay = f64::from(random.random_range(DELAY)) / 1e3;
    let parents = parents(random, shape, place, count);
    Node {
        needs: needs(random, parents),
        ms: random.random_range(WORK),
        failures,
        retries,
        delay_seconds: is_delayed.then_some(delay),
    }
}

/// The places of those that the task of this place waits for.
fn parents(random: &mut StdRng, shape: Shape, place: usize, count: usize) -> Vec<usize> {
    let is_last = place + 1 == count;
    match shape {
        _ if place == 0 => Vec::new(),
        Shape::Chain => vec![place - 1],
        Shape::Diamond | Shape::Funnel if is_last => (0..place).collect(),
        Shape::Diamond => vec![0],
        Shape::Funnel => Vec::new(),
        Shape::Mixed => {
            let most = random.random_range(0..=PARENTS.min(place));
            let mut parents: Vec<_> = (0..most).map(|_| random.random_range(0..place)).collect();
            parents.sort_unstable();
            parents.dedup();
            parents
        }
    }
}

/// A task with many parents asks the same of all: if each edge could break, it would never run.
fn needs(random: &mut StdRng, parents: Vec<usize>) -> Vec<(usize, Condition)> {
    let common = condition(random);
    let is_wide = parents.len() > PARENTS;
    let need = |parent| (parent, if is_wide { common } else { condition(random) });
    parents.into_iter().map(need).collect()
}

/// How a parent must end.
pub(super) fn condition(random: &mut StdRng) -> Condition {
    match random.random_range(0..1_000) {
        0..600 => Condition::Done,
        600..970 => Condition::Success,
        _ => Condition::Failure,
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn edges_lead_from_earlier_to_later_tasks() {
        let mut random = StdRng::seed_from_u64(7);
        let (mut widest, mut conditions) = (0, std::collections::BTreeSet::new());
        for _ in 0..1_000 {
            let nodes = draw(&mut random);
            assert!(TASKS.contains(&nodes.len()));
            for (place, node) in nodes.iter().enumerate() {
                assert!(node.needs.iter().all(|(parent, _)| *parent < place), "{nodes:?}");
                assert!(node.needs.windows(2).all(|pair| pair[0].0 < pair[1].0), "{nodes:?}");
                widest = widest.max(node.needs.len());
                conditions.extend(node.needs.iter().map(|(_, on)| *on));
            }
        }
        assert_eq!((widest, conditions.len()), (TASKS.end() - 1, 3));
    }

    #[test]
    fn some_tasks_fail_at_first_and_some_for_good() {
        let mut random = StdRng::seed_from_u64(7);
        let nodes: Vec<_> = (0..1_000).flat_map(|_| draw(&mut random)).collect();
        let share = |is_meant: &dyn Fn(&Node) -> bool| {
            nodes.iter().filter(|node| is_meant(node)).count() * 1_000 / nodes.len()
        };
        let at_first = share(&|node| (1..=node.retries).contains(&node.failures));
        let for_good = share(&|node| node.failures > node.retries);
        assert!((70..130).contains(&at_first) && (15..45).contains(&for_good));
        assert!((70..130).contains(&share(&|node| node.delay_seconds.is_some())));
    }
}
