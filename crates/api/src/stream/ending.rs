//! Why the server ends a stream.

use std::time::Duration;

use duly_client::wire::StreamClosed;
use duly_engine::{Engine, KeyWatch};
use futures_util::future::pending;
use tokio::time::{Instant, sleep_until};

use crate::caller::Validity;

/// Why the server ends a stream, told in its last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The token counts no longer.
    TokenExpired,
    /// The API key counts no longer.
    KeyRevoked,
    /// The server ends.
    ShuttingDown,
    /// The peer took nothing for long.
    SlowReader,
    /// The time is over that the caller asked for.
    WaitOver,
    /// The server cannot go on.
    Internal,
}

impl Closed {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::KeyRevoked => "KEY_REVOKED",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::SlowReader => "SLOW_READER",
            Self::WaitOver => "WAIT_OVER",
            Self::Internal => "INTERNAL",
        }
    }

    /// As it is told.
    pub(crate) fn view(self) -> StreamClosed {
        let detail = match self {
            Self::TokenExpired => "the token has expired; connect again with a new one",
            Self::KeyRevoked => "the API key was revoked or has expired",
            Self::ShuttingDown => "the server is shutting down; connect again",
            Self::SlowReader => "the client took nothing for long; connect again and read faster",
            Self::WaitOver => "the time that `wait` asked for is over",
            Self::Internal => "an internal error occurred; the server's log has it",
        };
        StreamClosed { code: self.code().to_owned(), detail: detail.to_owned() }
    }
}

/// Everything that may end a stream from outside.
pub(crate) struct Ending {
    engine: Engine,
    token_ends: Option<Instant>,
    key: Option<KeyWatch>,
    wait_ends: Option<Instant>,
}

impl Ending {
    /// That of a stream by a caller with these credentials, which may also ask for an end.
    pub(crate) fn new(engine: &Engine, validity: Validity, wait: Option<Duration>) -> Self {
        Self {
            engine: engine.clone(),
            token_ends: validity.ends,
            key: validity.key.map(|hash| engine.watch_key(hash)),
            wait_ends: wait.map(|wait| Instant::now() + wait),
        }
    }

    /// Waits until the stream has to end.
    pub(super) async fn comes(self) -> Closed {
        tokio::select! {
            () = self.engine.closing() => Closed::ShuttingDown,
            () = at(self.token_ends) => Closed::TokenExpired,
            () = refused(self.key.as_ref()) => Closed::KeyRevoked,
            () = at(self.wait_ends) => Closed::WaitOver,
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

async fn refused(key: Option<&KeyWatch>) {
    match key {
        Some(key) => key.refused().await,
        None => pending().await,
    }
}
