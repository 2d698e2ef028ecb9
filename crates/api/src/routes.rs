//! The routes, one file per noun.

pub(crate) mod health;
pub(crate) mod tasks;
