//! One file per command.

pub(crate) mod bench;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod task;
