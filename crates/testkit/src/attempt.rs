//! Attempts for tests that call a handler themselves.

use duly_core::id::TaskId;
use duly_core::lease::Lease;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::time::Timestamp;
use duly_worker::Context;

/// The third attempt of the second run of a task.
///
/// # Panics
/// When a name is none.
pub fn context(task_type: &str, tenant: &str, payload: &str) -> Context {
    let now = Timestamp::from_millis(1_900_000_000_000);
    let tenant = TenantName::new(tenant).expect("the name of a tenant");
    let task_type = TypeName::new(task_type).expect("the name of a type");
    Context::new(Lease {
        task: TaskId::mint(now, 7, 8),
        epoch: 5,
        run: 2,
        attempt: 3,
        retries: 3,
        lane: Lane { tenant, queue: QueueName::default_queue(), task_type },
        timeout: None,
        granted_at: now,
        run_at: now,
        payload: payload.into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    })
}
