//! The use cases of Duly and the loops that drive them. Sees ports only, never a backend.

mod backlog;
pub mod command;
mod deadlines;
mod desk;
mod dispatcher;
pub mod engine;
mod keep_alive;
mod leader;
mod observer;
mod outcomes;
mod pace;
pub mod random;
mod rates;
mod remotes;
mod retention;
mod served;
mod settings;
mod source;
mod submitter;
mod system;

pub use engine::{Config, Engine};
pub use rates::Rate;
