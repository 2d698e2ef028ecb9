//! A door for the fuzz target `url` in `fuzz/`, which alone is built with `--cfg fuzzing`.

use std::net::IpAddr;

use crate::handler::Context;
use crate::handlers::Http;
use crate::outbound::Guard;

/// The address in the URL of an `http` task that would be dialled without asking a resolver, if the
/// payload and the address pass all checks.
pub fn dialled_address(guard: &Guard, context: &Context) -> Option<IpAddr> {
    Http::dialled_address(guard, context)
}
