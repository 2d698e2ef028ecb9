//! Tokens: header, claims and signature. None is believed, since the secret is in no input.

#![no_main]

use std::sync::{Arc, LazyLock};

use duly_api::{AuthConfig, Authenticator};
use duly_core::ports::clock::Clock;
use duly_core::time::Timestamp;

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000)
    }
}

static AUTHENTICATOR: LazyLock<Authenticator> = LazyLock::new(|| {
    let secret = "bm90IHJhbmRvbSwgYnV0IGxvbmcgYW5kIG1peGVkIGVub3VnaCE=";
    let keys = format!(r#"{{"keys": [{{"id": "main", "algorithm": "HS256", "secret": "{secret}"}}]}}"#);
    let config: AuthConfig = serde_json::from_str(&keys).expect("a configuration");
    Authenticator::new(&config, Arc::new(Stopped)).expect("a key that is strong enough")
});

libfuzzer_sys::fuzz_target!(|text: &str| {
    duly_api::fuzzing::check_token(&AUTHENTICATOR, text);
    // A signature in the right form, so that the parts before it are read.
    duly_api::fuzzing::check_token(&AUTHENTICATOR, &format!("{text}.{}", "A".repeat(43)));
});
