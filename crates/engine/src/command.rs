//! The use cases, one file per verb.

mod backup;
pub mod bulk;
pub mod control;
pub mod dead_letters;
pub mod explain;
pub mod find;
pub mod logs;
pub mod nodes;
pub mod queues;
pub mod settings;
pub mod submit;
pub mod wait;
pub mod worker;
pub mod workers;
