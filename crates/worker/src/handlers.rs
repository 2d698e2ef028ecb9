//! The built-in handlers.

mod echo;
mod email;
mod flaky;
mod http;
mod map;
pub mod reference;
mod samples;
mod shell;
mod sleep;
mod sql;

pub use echo::Echo;
pub use email::Email;
pub use flaky::Flaky;
pub use http::Http;
pub use map::Map;
pub use samples::{Sample, with_samples};
pub use shell::Shell;
pub use sleep::Sleep;
pub use sql::Sql;

use crate::outbound::Guard;
use crate::registry::Registry;

/// The handlers that every worker has: `echo`, `flaky`, `http`, `map` and `sleep`.
pub fn builtin(guard: Guard) -> Registry {
    Registry::new()
        .with("echo", Echo)
        .with("flaky", Flaky)
        .with("http", Http::new(guard))
        .with("map", Map)
        .with("sleep", Sleep)
}
