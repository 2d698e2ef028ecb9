//! The use cases of Duly and the loops that drive them. Uses ports only, never a backend.

mod attached_sessions;
mod backlog;
mod cascade;
mod claim_slot;
pub mod command;
mod configured_schedules;
mod coordinator;
mod critical_paths;
mod deadlines;
mod dispatcher;
pub mod engine;
mod keep_alive;
mod key_cache;
pub mod key_text;
mod leader;
mod lease_links;
mod observer;
mod quotas;
pub mod random;
mod rates;
mod renewal;
mod retention;
mod schedule_bell;
mod served_types;
mod settings;
mod slot_run;
mod source;
mod submitter;
mod system;
mod task_waiters;
mod tenants;

pub use configured_schedules::ConfiguredSchedule;
pub use engine::{Config, Engine};
pub use quotas::QuotaExceeded;
pub use rates::Rate;
