//! Sessions.

use std::sync::Arc;
use std::time::Duration;

use duly_core::lease::Finished;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{Ending, Extend, ExtendLeases, Extended, Home, OpenSession};
use duly_core::state::Status;

use super::Harness;
use super::harness::{ids, retry, retry_after, success};

pub async fn ending_it_puts_its_leases_back_uncharged(harness: Harness) {
    let (leaver, stayer) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let tasks: Vec<_> = (0..3).map(|_| harness.task("email")).collect();
    harness.submit(&tasks).await;
    let done = harness.claim(leaver, 1).await.remove(0);
    harness.claim(leaver, 1).await;
    let kept = harness.claim(stayer, 1).await.remove(0);
    harness.finish_one(leaver, &done, success()).await;
    harness.leave(leaver).await;
    assert_eq!(harness.get(done.task).await.status, Status::Success);
    assert_eq!(harness.get(kept.task).await.status, Status::Running);
    let again = harness.claim_one(stayer).await;
    assert_eq!((again.attempt, again.epoch), (1, 2));
    assert_eq!(harness.get(again.task).await.losses, 0);
    assert!(harness.claim(leaver, 10).await.is_empty());
}

pub async fn ending_it_twice_is_the_same_as_once(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(session).await;
    harness.leave(session).await;
    let once = harness.get(id).await;
    harness.leave(session).await;
    assert_eq!(harness.get(id).await, once);
}

pub async fn an_ended_session_cannot_finish(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    harness.leave(session).await;
    for outcome in [success(), retry()] {
        assert_eq!(harness.finish_one(session, &lease, outcome).await, Finished::LeaseLost);
    }
    assert_eq!(harness.get(id).await.status, Status::Pending);
}

pub async fn its_name_shows_on_its_tasks(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    assert_eq!(harness.get(id).await.worker, None);
    let lease = harness.claim_one(session).await;
    let worker = harness.get(id).await.worker.unwrap();
    assert!(worker.starts_with("worker-"), "{worker}");
    harness.finish_one(session, &lease, success()).await;
    assert_eq!(harness.get(id).await.worker.as_deref(), Some(worker.as_str()));
}

pub async fn its_owner_is_kept(mut harness: Harness) {
    let owner: Option<Arc<str>> = Some(Arc::from("key:7"));
    let remote = |owner: &Option<Arc<str>>| OpenSession {
        home: Home::Remote,
        owner: owner.clone(),
        ..harness.new_session(&["email"])
    };
    let (owned, free) = (remote(&owner), remote(&None));
    let ids = [harness.open(owned).await, harness.open(free).await];
    for is_crashed in [false, true] {
        if is_crashed {
            harness.crash().await;
        }
        let sessions = harness.store().sessions().await.unwrap();
        let owner_of =
            |id| sessions.iter().find(|it| it.opened.id == id).unwrap().opened.owner.clone();
        assert_eq!(ids.map(owner_of), [owner.clone(), None]);
    }
}

pub async fn it_gets_only_its_tenants_tasks(harness: Harness) {
    let tenant = TenantName::new("other").unwrap();
    let bound = OpenSession { tenant: Some(tenant.clone()), ..harness.new_session(&["email"]) };
    let bound = harness.open(bound).await;
    harness.submit_one(harness.task("email")).await;
    let mut foreign = harness.task("email");
    foreign.lane.tenant = tenant;
    let foreign = harness.submit_one(foreign).await;
    assert_eq!(ids(&harness.claim(bound, 10).await), [foreign]);
}

pub async fn remote_ones_are_listed_while_they_are_open(harness: Harness) {
    let (remote, local) = (harness.remote(&["email"]).await, harness.session(&["email"]).await);
    let first = harness.last_beat(remote).await.unwrap();
    assert_eq!(harness.last_beat(local).await, None);
    assert!(harness.beat(remote, &[], &[]).await);
    assert_ne!(harness.last_beat(remote).await, Some(first), "a beat shows");
    harness.leave(remote).await;
    assert_eq!(harness.last_beat(remote).await, None);
    assert!(!harness.beat(remote, &[], &[]).await, "an ended session cannot beat");
}

pub async fn the_leases_of_a_dead_one_count_a_loss(harness: Harness) {
    let dead = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(dead).await;
    harness.die(dead).await;
    let task = harness.get(id).await;
    assert_eq!((task.status, task.losses, task.charged), (Status::Pending, 1, 0));
    assert_eq!(harness.finish_one(dead, &lease, success()).await, Finished::LeaseLost);
    let next = harness.remote(&["email"]).await;
    let successor = harness.claim_one(next).await;
    assert_eq!((successor.epoch, successor.attempt), (2, 1));
    assert_eq!(harness.finish_one(dead, &lease, success()).await, Finished::LeaseLost);
    assert_eq!(harness.get(id).await.status, Status::Running);
    assert_eq!(harness.finish_one(next, &successor, success()).await, Finished::Done);
}

pub async fn what_it_had_not_started_counts_no_loss(harness: Harness) {
    let dead = harness.remote(&["email"]).await;
    for _ in 0..3 {
        harness.submit_one(harness.task("email")).await;
    }
    let held = ids(&harness.claim(dead, 10).await);
    assert!(harness.beat(dead, &[], &held).await);
    assert!(harness.beat(dead, &[], &held[1..]).await, "only the last word counts");
    harness.die(dead).await;
    for (number, id) in held.into_iter().enumerate() {
        let task = harness.get(id).await;
        let losses = u32::from(number == 0);
        assert_eq!((task.status, task.losses), (Status::Pending, losses));
    }
}

pub async fn one_that_has_beaten_again_is_not_dead(harness: Harness) {
    let session = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(session).await;
    let beat = harness.last_beat(session).await.unwrap();
    assert!(harness.beat(session, &[], &[]).await);
    harness.store().end_session(session, Ending::Died { beat }).await.unwrap();
    assert_eq!(harness.get(id).await.status, Status::Running);
    assert_eq!(harness.finish_one(session, &lease, success()).await, Finished::Done);
}

pub async fn an_ended_one_cannot_be_opened_again(mut harness: Harness) {
    harness.submit_one(harness.task("email")).await;
    let local = harness.new_session(&["email"]);
    let remote = OpenSession { home: Home::Remote, ..harness.new_session(&["email"]) };
    let left = harness.new_session(&["email"]);
    for session in [&local, &remote, &left] {
        harness.open(session.clone()).await;
    }
    harness.leave(remote.id).await;
    harness.leave(left.id).await;
    harness.crash().await;
    for session in [local, remote, left] {
        let id = harness.open(session).await;
        assert!(!harness.beat(id, &[], &[]).await);
        assert!(harness.claim(id, 10).await.is_empty());
        assert_eq!(harness.last_beat(id).await, None);
    }
}

pub async fn its_end_leaves_what_other_sessions_hold_now(harness: Harness) {
    for ending in [Ending::Closed, Ending::Died { beat: 0 }] {
        let (old, new) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
        let id = harness.submit_one(harness.task("email")).await;
        let stale = harness.claim_one(old).await;
        harness.finish_one(old, &stale, retry_after(Some(Duration::ZERO))).await;
        let lease = harness.claim_one(new).await;
        let before = harness.get(id).await;
        for _ in 0..2 {
            assert!(harness.store().end_session(old, ending).await.unwrap().is_empty());
            assert_eq!(harness.get(id).await, before);
        }
        assert_eq!(harness.finish_one(new, &lease, success()).await, Finished::Done);
    }
}

pub async fn a_beat_after_its_end_brings_nothing_back(harness: Harness) {
    let dead = harness.remote(&["email"]).await;
    let id = harness.submit_one(harness.task("email")).await;
    let stale = harness.claim_one(dead).await;
    harness.die(dead).await;
    let next = harness.remote(&["email"]).await;
    for holder in [None, Some(next)] {
        let lease = match holder {
            Some(session) => Some(harness.claim_one(session).await),
            None => None,
        };
        let before = harness.get(id).await;
        assert!(!harness.beat(dead, &[1], &[]).await);
        assert_eq!(harness.last_beat(dead).await, None);
        assert_eq!(harness.get(id).await, before);
        assert_eq!(harness.finish_one(dead, &stale, success()).await, Finished::LeaseLost);
        if let Some(lease) = lease {
            assert_eq!(harness.finish_one(next, &lease, success()).await, Finished::Done);
        }
    }
}

pub async fn tasks_of_another_tenant_are_unknown_to_it(harness: Harness) {
    let tenant = TenantName::new("other").unwrap();
    let bound = OpenSession { tenant: Some(tenant), ..harness.new_session(&["email"]) };
    let bound = harness.open(bound).await;
    let holder = harness.session(&["email"]).await;
    harness.submit_one(harness.task("email")).await;
    let lease = harness.claim_one(holder).await;
    assert_eq!(harness.finish_one(bound, &lease, success()).await, Finished::Unknown);
    let extend = Extend { task: lease.task, epoch: lease.epoch, by: Duration::from_secs(1) };
    let order = ExtendLeases { session: bound, leases: vec![extend] };
    assert_eq!(harness.store().extend(order).await.unwrap(), [Extended::Unknown]);
}

pub async fn signs_of_life_of_ones_own_end_nothing(harness: Harness) {
    let (one, two) = (harness.session(&["email"]).await, harness.session(&["email"]).await);
    let id = harness.submit_one(harness.task("email")).await;
    harness.claim_one(one).await;
    assert!(harness.beat(one, &[], &[id]).await);
    assert!(harness.store().keep_alive(vec![one, two]).await.unwrap().is_empty());
    harness.leave(two).await;
    let ended = harness.store().keep_alive(vec![one, two]).await.unwrap();
    let expected = if harness.outlives_nodes() { vec![two] } else { vec![] };
    assert_eq!(ended, expected, "only where another process could have ended it");
    assert_eq!(harness.get(id).await.status, Status::Running);
}

pub async fn those_that_serve_a_lane_are_listed(mut harness: Harness) {
    let tenant = |name: &str| Some(TenantName::new(name).unwrap());
    let remote = |types: &[&str], tenant, queues: &[&str]| OpenSession {
        home: Home::Remote,
        tenant,
        queues: queues.iter().map(|name| QueueName::new(name).unwrap()).collect(),
        ..harness.new_session(types)
    };
    let lane = harness.task("email").lane;
    let mut expected = Vec::new();
    for able in [
        remote(&["letter", "email"], None, &[]),
        remote(&["email"], tenant("default"), &["other", "default"]),
    ] {
        expected.push(harness.open(able).await);
    }
    for unable in [
        remote(&["email2", "mail", "e-mail"], None, &[]),
        remote(&["email"], None, &["default2", "other"]),
        remote(&["email"], tenant("other"), &[]),
    ] {
        harness.open(unable).await;
    }
    let ended = harness.remote(&["email"]).await;
    harness.leave(ended).await;
    harness.session(&["email"]).await;
    for _ in 0..2 {
        let mut found = harness.store().serving(&lane).await.unwrap();
        found.sort();
        assert_eq!(found, expected);
        harness.crash().await;
    }
}

pub async fn one_that_drains_is_known_to_drain_until_it_ends(mut harness: Harness) {
    let (remote, local) = (harness.remote(&["email"]).await, harness.session(&["email"]).await);
    let store = harness.store();
    let both = || vec![remote, local];
    assert_eq!(store.draining(both()).await.unwrap(), []);
    assert!(store.drain(remote, true).await.unwrap() && store.drain(local, true).await.unwrap());
    let mut draining = store.draining(both()).await.unwrap();
    draining.sort_unstable();
    let mut expected = both();
    expected.sort_unstable();
    assert_eq!(draining, expected);
    let drains = async |harness: &Harness| {
        let sessions = harness.store().sessions().await.unwrap();
        sessions.iter().find(|it| it.opened.id == remote).map(|it| it.draining)
    };
    assert_eq!(drains(&harness).await, Some(true));
    assert!(store.drain(local, false).await.unwrap());
    assert_eq!(store.draining(both()).await.unwrap(), [remote]);
    drop(store);
    harness.crash().await;
    assert_eq!(drains(&harness).await, Some(true), "it outlives a restart");
    let store = harness.store();
    assert!(store.drain(remote, false).await.unwrap());
    assert_eq!(drains(&harness).await, Some(false));
    harness.leave(remote).await;
    assert!(!store.drain(remote, true).await.unwrap(), "it has ended");
    assert_eq!(store.draining(vec![remote]).await.unwrap(), []);
}

pub async fn all_are_listed_with_what_they_hold(harness: Harness) {
    let tenant = Some(TenantName::new("other").unwrap());
    let remote = OpenSession { home: Home::Remote, tenant, ..harness.new_session(&["letter"]) };
    let id = harness.open(remote.clone()).await;
    let local = harness.session(&["email"]).await;
    for _ in 0..3 {
        harness.submit_one(harness.task("email")).await;
    }
    let leases = harness.claim(local, 2).await;
    harness.finish_one(local, &leases[0], success()).await;
    let opened_at = harness.now();
    harness.advance(Duration::from_secs(5));
    let find = async |id| {
        let workers = harness.store().workers().await.unwrap();
        workers.into_iter().find(|worker| worker.opened.id == id)
    };
    let listed = find(id).await.unwrap();
    assert_eq!((&listed.opened, listed.node, listed.leases), (&remote, None, 0));
    assert_eq!((listed.beat_at, listed.draining), (opened_at, false));
    assert!(harness.beat(id, &[], &[]).await && harness.store().drain(id, true).await.unwrap());
    let listed = find(id).await.unwrap();
    assert_eq!((listed.beat_at, listed.draining), (harness.now(), true));
    let own = find(local).await.unwrap();
    assert_eq!((own.leases, own.node), (1, Some(harness.store().node())));
    harness.leave(id).await;
    assert_eq!(find(id).await, None);
}
