//! The installation's settings and their history.

use duly_core::back_off::{BackOff, Strategy};
use duly_core::limits::{LOSSES, SETTINGS_VERSIONS};
use duly_core::ports::store::{ListSettings, Put, PutSettings, VersionedSettings};
use duly_core::settings::{Retention, Settings};
use duly_core::state::Status;

use super::Harness;

/// Settings that can be told from others by this number.
fn numbered(number: u32) -> Settings {
    Settings { retries: number, ..Settings::default() }
}

async fn put(harness: &Harness, expected: u64, settings: Settings) -> Put {
    let put = PutSettings { expected, settings, comment: None };
    harness.store().put_settings(put).await.unwrap()
}

async fn current(harness: &Harness) -> VersionedSettings {
    harness.store().settings().await.unwrap()
}

async fn history(harness: &Harness, before: Option<u64>, limit: u32) -> Vec<u64> {
    let page = ListSettings { before, limit };
    let versions = harness.store().settings_history(page).await.unwrap();
    versions.into_iter().map(|version| version.version).collect()
}

pub async fn before_the_first_change_the_defaults_hold(harness: Harness) {
    assert_eq!(current(&harness).await, VersionedSettings::default());
    assert!(history(&harness, None, 10).await.is_empty());
}

pub async fn a_change_reads_back_as_it_was(harness: Harness) {
    let second = std::time::Duration::from_secs(1);
    let settings = Settings {
        retries: 7,
        back_off: BackOff { strategy: Strategy::Linear, base: second / 4, ..BackOff::default() },
        worker_concurrency: Some(32),
        loss_limit: Some(3),
        retention: Retention { success: Some(second), failed: None, cancelled: None },
        redact: vec!["/card/number".to_owned()],
    };
    let comment = Some("a busy night\nis coming".to_owned());
    let put = PutSettings { expected: 0, settings: settings.clone(), comment: comment.clone() };
    let answer = harness.store().put_settings(put).await.unwrap();
    assert_eq!(answer, Put::Done { version: 1 });
    let expected =
        VersionedSettings { version: 1, settings, changed_at: Some(harness.now()), comment };
    assert_eq!(current(&harness).await, expected);
    let page = ListSettings { before: None, limit: 10 };
    assert_eq!(harness.store().settings_history(page).await.unwrap(), [expected]);
}

pub async fn a_change_based_on_another_version_is_refused(harness: Harness) {
    put(&harness, 0, numbered(1)).await;
    put(&harness, 1, numbered(2)).await;
    for expected in [0, 1, 3, u64::MAX] {
        let refused = put(&harness, expected, numbered(9)).await;
        assert_eq!(refused, Put::Conflict { current: 2 }, "{expected}");
    }
    assert_eq!(current(&harness).await.settings, numbered(2));
    assert_eq!(history(&harness, None, 10).await, [2, 1]);
}

pub async fn a_repeated_change_is_made_once(harness: Harness) {
    for _ in 0..2 {
        assert_eq!(put(&harness, 0, numbered(1)).await, Put::Done { version: 1 });
    }
    assert_eq!(put(&harness, 1, numbered(1)).await, Put::Done { version: 2 }, "another change");
    assert_eq!(put(&harness, 0, numbered(1)).await, Put::Conflict { current: 2 });
    let commented = Some("why".to_owned());
    let other = PutSettings { expected: 1, settings: numbered(1), comment: commented };
    let answer = harness.store().put_settings(other).await.unwrap();
    assert_eq!(answer, Put::Conflict { current: 2 }, "the comment is part of it");
    assert_eq!(history(&harness, None, 10).await, [2, 1]);
}

pub async fn one_of_many_changes_at_once_wins(harness: Harness) {
    let changes = (1..=8).map(|number| put(&harness, 0, numbered(number)));
    let answers = futures_util::future::join_all(changes).await;
    let winners = answers.iter().filter(|answer| **answer == Put::Done { version: 1 }).count();
    let losers = answers.iter().filter(|answer| **answer == Put::Conflict { current: 1 }).count();
    assert_eq!((winners, losers), (1, 7), "{answers:?}");
}

pub async fn the_history_is_paged_newest_first(harness: Harness) {
    for number in 0..5 {
        put(&harness, number.into(), numbered(number)).await;
    }
    assert_eq!(history(&harness, None, 2).await, [5, 4]);
    assert_eq!(history(&harness, Some(4), 2).await, [3, 2]);
    assert_eq!(history(&harness, Some(2), 2).await, [1]);
    assert!(history(&harness, Some(1), 2).await.is_empty());
    assert_eq!(history(&harness, Some(u64::MAX), 1).await, [5]);
}

pub async fn only_the_last_versions_are_kept(harness: Harness) {
    for number in 0..SETTINGS_VERSIONS + 3 {
        put(&harness, number.into(), numbered(number)).await;
    }
    let kept = history(&harness, None, u32::MAX).await;
    assert_eq!(kept.len(), SETTINGS_VERSIONS as usize);
    assert_eq!((kept[0], *kept.last().unwrap()), (u64::from(SETTINGS_VERSIONS) + 3, 4));
}

pub async fn they_outlive_a_restart(mut harness: Harness) {
    put(&harness, 0, numbered(1)).await;
    put(&harness, 1, numbered(2)).await;
    let before = current(&harness).await;
    harness.crash().await;
    assert_eq!(current(&harness).await, before);
    assert_eq!(history(&harness, None, 10).await, [2, 1]);
    assert_eq!(put(&harness, 1, numbered(3)).await, Put::Conflict { current: 2 });
}

pub async fn a_loss_limit_holds_at_once(harness: Harness) {
    let id = harness.submit_one(harness.task("email")).await;
    harness.lose("email", 2).await;
    assert_eq!(harness.get(id).await.status, Status::Pending);
    let strict = Settings { loss_limit: Some(3), ..Settings::default() };
    put(&harness, 0, strict).await;
    assert_eq!(harness.get(id).await.status, Status::Pending, "it counts from the next loss on");
    harness.lose("email", 1).await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.losses), (Status::Failed, 3));

    put(&harness, 1, Settings::default()).await;
    let next = harness.submit_one(harness.task("email")).await;
    harness.lose("email", LOSSES - 1).await;
    assert_eq!(harness.get(next).await.status, Status::Pending, "as the store was opened again");
    harness.lose("email", 1).await;
    assert_eq!(harness.get(next).await.status, Status::Failed);
}

pub async fn a_loss_limit_outlives_a_restart(mut harness: Harness) {
    put(&harness, 0, Settings { loss_limit: Some(1), ..Settings::default() }).await;
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    harness.crash().await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.losses), (Status::Failed, 1));
}
