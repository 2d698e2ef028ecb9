//! Two nodes that decide slots of one schedule at the same time, or while it is changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::ScheduleId;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Decide, Decided, Expected, PutSchedule, ScheduleChange, Schedules as _, SlotOrder, SlotOutcome,
    SwitchSchedule, Tasks as _,
};
use duly_core::schedule::{Definition, Overlap, Schedule, ScheduleStatus, SlotRun};
use duly_core::task::NewTask;

use crate::world::World;

const TIMES: u32 = 20;
const AHEAD: Duration = Duration::from_secs(30);

impl World {
    async fn schedule(&self, number: u32) -> Schedule {
        let put = PutSchedule {
            id: ScheduleId::mint(self.clock.now(), number.into()),
            tenant: TenantName::default_tenant(),
            name: ScheduleName::new(&format!("schedule-{number}")).unwrap(),
            definition: Definition { rule: Arc::from("{}"), template: Arc::from("{}") },
            labels: BTreeMap::new(),
            status: ScheduleStatus::Active,
            note: None,
            managed: false,
            expected: Expected::Absent,
        };
        match self.nodes[0].put_schedule(put).await.unwrap() {
            ScheduleChange::Done { schedule, created: true } => *schedule,
            other => panic!("{other:?}"),
        }
    }

    /// Each node has a task of its own for the slot: a second one would be seen.
    async fn decide(&self, node: usize, schedule: &Schedule, task: &NewTask) -> Decided {
        let decide = Decide {
            schedule: schedule.id,
            generation: schedule.generation,
            moves: Some((schedule.position, task.run_at)),
            overlap: Overlap::Allow,
            slots: vec![(task.run_at, SlotOrder::Task(Box::new(task.clone())))],
        };
        let answers = self.nodes[node].decide_slots(vec![decide]).await.unwrap();
        answers.into_iter().next().unwrap()
    }

    async fn is_stored(&self, task: &NewTask) -> bool {
        let tenant = TenantName::default_tenant();
        self.nodes[0].get(&tenant, task.id).await.unwrap().is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_leaders_decide_a_slot_once() {
    let Some(world) = World::new().await else { return };
    for number in 0..TIMES {
        let schedule = world.schedule(number).await;
        let tasks = [0, 1].map(|node| world.task(2 * number + node, AHEAD));
        let (first, second) = tokio::join!(
            world.decide(0, &schedule, &tasks[0]),
            world.decide(1, &schedule, &tasks[1]),
        );
        let ran = |task: &NewTask| Decided::Done {
            slots: vec![SlotOutcome::Ran(SlotRun::Task(task.id))],
            cancelled: vec![],
        };
        // The second call is told what the slot has started.
        assert_eq!(first, second);
        let stored = [world.is_stored(&tasks[0]).await, world.is_stored(&tasks[1]).await];
        let place = stored.iter().position(|stored| *stored).expect("one of them is stored");
        assert_eq!(stored.iter().filter(|stored| **stored).count(), 1);
        assert_eq!(first, ran(&tasks[place]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_leaves_nothing_that_a_leader_decides_beside_it() {
    let Some(world) = World::new().await else { return };
    let (mut before, mut after) = (0, 0);
    for number in 0..TIMES {
        let schedule = world.schedule(number).await;
        let task = world.task(number, AHEAD);
        let pause = SwitchSchedule {
            tenant: schedule.tenant.clone(),
            name: schedule.name.clone(),
            status: ScheduleStatus::Paused,
            note: None,
            expected: Expected::Version(schedule.version),
        };
        let pause = world.nodes[0].switch_schedule(pause);
        let (paused, decided) = tokio::join!(pause, world.decide(1, &schedule, &task));
        assert!(matches!(paused.unwrap(), ScheduleChange::Done { .. }));
        match decided {
            Decided::Done { .. } => before += 1,
            Decided::Stale => after += 1,
        }
        assert!(!world.is_stored(&task).await, "it is withdrawn, or was never stored");
    }
    assert_eq!(before + after, TIMES);
}
