//! The use cases of Duly and the loops that drive them. Sees ports only, never a backend.

mod backlog;
pub mod command;
mod desk;
mod dispatcher;
pub mod engine;
mod outcomes;
pub mod random;
mod served;
mod source;
mod submitter;

pub use engine::Engine;
