//! Schedules of the configuration file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use duly_engine::ConfiguredSchedule;

use super::*;

/// One that runs each minute, of the default tenant.
fn configured(called: &str, note: &str) -> ConfiguredSchedule {
    let schedule =
        NewSchedule { managed: true, note: Some(note.to_owned()), ..new(every("1m"), echo()) };
    ConfiguredSchedule { tenant: tenant(), name: name(called), schedule }
}

impl World {
    /// All schedules: name, note, whether the configuration defines it, and the version.
    async fn all(&self) -> Vec<(String, Option<String>, bool, u64)> {
        let page = ListSchedules {
            tenant: tenant(),
            status: None,
            labels: BTreeMap::new(),
            after: None,
            limit: 100,
        };
        let (views, _) = self.engine.schedules(page).await.unwrap();
        let of = |it: ScheduleView| {
            let schedule = it.schedule;
            (schedule.name.to_string(), schedule.note, schedule.managed, schedule.version)
        };
        views.into_iter().map(of).collect()
    }

    async fn configure(&self, schedules: Vec<ConfiguredSchedule>) -> Vec<(String, bool)> {
        self.engine.keep_configured_schedules(schedules);
        settle().await;
        self.all().await.into_iter().map(|(name, _, managed, _)| (name, managed)).collect()
    }
}

fn named(names: &[(&str, bool)]) -> Vec<(String, bool)> {
    names.iter().map(|(name, managed)| ((*name).to_owned(), *managed)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_configuration_creates_changes_and_deletes_its_own_schedules_alone() {
    let mut world = World::new().await;
    world.put_named("by-hand", new(every("1m"), echo())).await;
    let both = vec![configured("a", "first"), configured("b", "first")];
    let expected = named(&[("a", true), ("b", true), ("by-hand", false)]);
    assert_eq!(world.configure(both.clone()).await, expected);
    let before = world.all().await;
    world.engine.close().await;
    world.start_again().await;
    assert_eq!(world.configure(both).await, expected);
    assert_eq!(world.all().await, before, "the same configuration changes nothing");
    world.engine.close().await;
    world.start_again().await;
    let next = vec![configured("a", "second"), configured("by-hand", "mine")];
    let left = world.configure(next).await;
    assert_eq!(left, named(&[("a", true), ("by-hand", false)]), "what is by hand stays so");
    assert_eq!(world.all().await[0].1.as_deref(), Some("second"));
    world.engine.close().await;
    world.start_again().await;
    assert_eq!(world.configure(vec![]).await, named(&[("by-hand", false)]));
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_applies_the_configuration_and_tries_until_the_store_takes_it() {
    let world = World::among_others().await;
    pass(TTL).await;
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    assert_eq!(world.configure(vec![configured("a", "x")]).await, []);
    world.faults.set_schedules_fail(true);
    world.faults.another_leads.store(false, Ordering::SeqCst);
    pass(TTL).await;
    world.faults.set_schedules_fail(false);
    pass(TTL * 2).await;
    assert_eq!(world.all().await.len(), 1);
    let records = world.engine.slot_records(&tenant(), &name("a")).await.unwrap();
    assert!(records.is_some());
}

crate::stores::with_lost_hints!(
    all: the_configuration_creates_changes_and_deletes_its_own_schedules_alone
);
