//! What is derived from a slot, and is therefore the same on every node and in every attempt to start it:
//! the ids of what it runs, and its share of the jitter.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::rule::Rule;
use crate::back_off;
use crate::id::{ScheduleId, TaskId, WorkflowId};
use crate::time::Timestamp;

/// The id of the task of a slot. `generation` counts the times that the schedule was changed or was asked
/// to run the slot again.
pub fn slot_task_id(
    schedule: ScheduleId,
    generation: u32,
    slot: Timestamp,
    run_at: Timestamp,
) -> TaskId {
    let [ordinal, random] = numbers(b"task", schedule, generation, slot);
    TaskId::mint(run_at, low(ordinal), random)
}

/// The id of the workflow of a slot.
pub fn slot_workflow_id(
    schedule: ScheduleId,
    generation: u32,
    slot: Timestamp,
    run_at: Timestamp,
) -> WorkflowId {
    let [ordinal, random] = numbers(b"flow", schedule, generation, slot);
    WorkflowId::mint(run_at, low(ordinal), random)
}

impl Rule {
    /// How long after a slot its task starts: evenly distributed, and below the jitter.
    pub fn jitter_of(&self, schedule: ScheduleId, slot: Timestamp) -> Duration {
        let [_, random] = numbers(b"wait", schedule, 0, slot);
        back_off::draw(self.jitter.saturating_sub(Duration::from_millis(1)), random)
    }
}

fn numbers(what: &[u8; 4], schedule: ScheduleId, generation: u32, slot: Timestamp) -> [u64; 2] {
    let mut hasher = Sha256::new();
    hasher.update(what);
    hasher.update(schedule.as_bytes());
    hasher.update(generation.to_be_bytes());
    hasher.update(slot.millis().to_be_bytes());
    let hash: [u8; 32] = hasher.finalize().into();
    let number = |at: usize| {
        u64::from_be_bytes(hash[at..at + 8].try_into().expect("eight of thirty-two bytes"))
    };
    [number(0), number(8)]
}

/// What an id has room for, and more.
fn low(number: u64) -> u32 {
    u32::try_from(number >> 32).expect("half of the bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleDraft;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn the_id_of_a_slot_depends_on_nothing_but_the_slot() {
        let schedule = ScheduleId::mint(at(1_700_000_000_000), 5);
        let (slot, run_at) = (at(1_900_000_000_000), at(1_900_000_000_777));
        let id = slot_task_id(schedule, 1, slot, run_at);
        assert_eq!(id, slot_task_id(schedule, 1, slot, run_at));
        assert_eq!(id.first_due(), run_at);
        assert_eq!(id.to_string().as_bytes()[14], b'7');
        let others = [
            slot_task_id(ScheduleId::mint(at(1_700_000_000_000), 6), 1, slot, run_at),
            slot_task_id(schedule, 2, slot, run_at),
            slot_task_id(schedule, 1, at(1_900_000_001_000), run_at),
        ];
        assert!(others.iter().all(|other| *other != id && other.first_due() == run_at));
        let workflow = slot_workflow_id(schedule, 1, slot, run_at);
        assert_ne!(workflow.as_bytes(), id.as_bytes());
        assert_eq!(workflow.as_bytes()[..6], id.as_bytes()[..6]);
    }

    #[test]
    fn ids_stay_as_they_are() {
        let schedule = ScheduleId::mint(at(1_700_000_000_000), 5);
        let id = slot_task_id(schedule, 1, at(1_900_000_000_000), at(1_900_000_000_777));
        assert_eq!(id.to_string(), "01ba60d3-3b09-7643-8d50-480ec1e3faf9");
    }

    #[test]
    fn jitter_is_spread_evenly_and_stays_below_its_bound() {
        let draft = ScheduleDraft {
            every: Some("1m".into()),
            jitter_seconds: Some(10.0),
            ..ScheduleDraft::default()
        };
        let rule = draft.read().unwrap();
        let schedule = ScheduleId::mint(at(1_700_000_000_000), 5);
        let mut tenths = [0; 10];
        for n in 0..10_000 {
            let jitter = rule.jitter_of(schedule, at(n * 60_000));
            assert_eq!(jitter, rule.jitter_of(schedule, at(n * 60_000)));
            tenths[usize::try_from(jitter.as_secs()).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
        let none = ScheduleDraft { every: Some("1m".into()), ..ScheduleDraft::default() };
        assert_eq!(none.read().unwrap().jitter_of(schedule, at(0)), Duration::ZERO);
    }
}
