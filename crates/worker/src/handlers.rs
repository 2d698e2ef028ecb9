//! The handlers that every worker brings along.

mod echo;
mod flaky;
mod http;
mod sleep;

pub use echo::Echo;
pub use flaky::Flaky;
pub use http::Http;
pub use sleep::Sleep;

use crate::outbound::Guard;
use crate::registry::Registry;

/// All of them under their usual names: `echo`, `flaky`, `http` and `sleep`.
pub fn builtin(guard: Guard) -> Registry {
    Registry::new()
        .with("echo", Echo)
        .with("flaky", Flaky)
        .with("http", Http::new(guard))
        .with("sleep", Sleep)
}
