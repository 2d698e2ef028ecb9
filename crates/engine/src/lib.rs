//! The use cases of Duly and the loops that drive them. Sees ports only, never a backend.

pub mod command;
pub mod engine;

pub use engine::Engine;
