//! The use cases, one file per verb.

mod audit;
mod backup;
pub mod bulk;
pub mod control;
pub mod dead_letters;
pub mod events;
pub mod explain;
pub mod find;
pub mod keys;
pub mod logs;
pub mod nodes;
pub mod payloads;
pub mod queues;
pub mod schedules;
pub mod settings;
pub mod submit;
pub mod tenants;
pub(crate) mod then;
pub mod wait;
pub mod watch;
pub mod worker;
pub mod workers;
pub mod workflows;

#[cfg(test)]
pub(crate) use self::samples::{test_spec, test_task};

/// What unit tests of commands work with.
#[cfg(test)]
mod samples {
    use duly_core::id::TaskId;
    use duly_core::name::{Lane, TenantName};
    use duly_core::state::Status;
    use duly_core::submit::{Draft, Spec};
    use duly_core::task::Task;
    use duly_core::time::Timestamp;

    pub(crate) fn test_spec() -> Spec {
        Draft { task_type: Some("t".to_owned()), ..Draft::default() }.check().unwrap()
    }

    pub(crate) fn test_task() -> Task {
        let spec = test_spec();
        let at = Timestamp::from_millis(1_900_000_000_000);
        Task {
            id: TaskId::mint(at, 7, 9),
            lane: Lane {
                tenant: TenantName::default_tenant(),
                queue: spec.queue,
                task_type: spec.task_type,
            },
            status: Status::Running,
            priority: spec.priority,
            run_at: at,
            created_at: at,
            granted_at: Some(at),
            started_at: None,
            finished_at: None,
            run: 1,
            charged: 0,
            retries: 0,
            back_off: duly_core::back_off::BackOff::default(),
            epoch: 1,
            losses: 0,
            timeout: None,
            session: None,
            worker: None,
            labels: spec.labels,
            payload: spec.payload,
            result: None,
            error: None,
            progress: None,
            links: None,
        }
    }
}
