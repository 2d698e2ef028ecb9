//! Tenants that one node suspends while another grants tasks.

use std::time::Duration;

use duly_core::name::TenantName;
use duly_core::ports::store::{
    Claim, Expected, Home, PutTenant, StoreHealth as _, Submit, Submitted, Tasks as _,
    TenantChange, TenantRecords as _,
};
use duly_core::tenant::{Quotas, TenantSettings};

use crate::world::World;

impl World {
    pub(crate) async fn suspend(&self, node: usize, suspended: bool) {
        let put = PutTenant {
            name: TenantName::default_tenant(),
            suspended,
            note: None,
            quotas: Quotas::default(),
            settings: TenantSettings::default(),
            expected: Expected::Any,
        };
        let change = self.nodes[node].put_tenant(put).await.unwrap();
        assert!(matches!(change, TenantChange::Done { .. }), "{change:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_node_grants_a_task_of_a_tenant_that_another_has_suspended() {
    let Some(world) = World::new().await else { return };
    let session = world.open(1, 1, Home::Local).await;
    // The other node knows the lane, and that nothing holds it back.
    world.submit(1, vec![world.task(1, Duration::ZERO)]).await;
    world.succeed(1, session, 1).await;
    world.submit(1, vec![world.task(2, Duration::ZERO)]).await;
    world.suspend(0, true).await;
    assert!(world.claim(1, session, 2).await.is_empty());
    let offer = Some(Claim::new(session, 3, 10));
    let batch = Submit { tasks: vec![world.task(3, Duration::ZERO)], offer };
    let answers = world.nodes[1].submit(batch).await.unwrap();
    assert!(matches!(answers[..], [Submitted::Stored { .. }]), "{answers:?}");
    world.suspend(0, false).await;
    // The other node finds out with its next claim, and grants with the one after it at the latest.
    let leases = [world.claim(1, session, 4).await, world.claim(1, session, 5).await].concat();
    assert_eq!(leases.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_goes_on_wakes_other_nodes() {
    let Some(world) = World::new().await else { return };
    world.await_notification(0, 1).await;
    world.suspend(0, true).await;
    world.suspend(0, false).await;
    let hint = tokio::time::timeout(Duration::from_secs(10), world.nodes[1].hint()).await;
    assert!(hint.is_ok(), "it is told");
}
