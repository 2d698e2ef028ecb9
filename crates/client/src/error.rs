//! Why a call to the server failed, with messages that say what to do next.

use std::time::Duration;

use crate::wire::Problem;

/// Why a call to the server failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be that of a server.
    #[error("`{url}` is not an address of a Duly server, such as http://127.0.0.1:8080")]
    BadAddress {
        /// The given address.
        url: String,
    },
    /// The token cannot be sent.
    #[error("the token holds characters that cannot be sent; check --token-file or DULY_TOKEN")]
    BadToken,
    /// The certificates of authorities cannot be read.
    #[error("--ca-file holds no certificates in PEM")]
    BadAuthorities,
    /// The server refused the call.
    #[error("{problem}")]
    Problem {
        /// Why.
        problem: Box<Problem>,
        /// How long to wait before the next try, if the server says so.
        retry_after: Option<Duration>,
    },
    /// There was no answer.
    #[error(
        "cannot reach {url}: is `duly dev` running there? Start it, or pass --server with the \
         address of a running server"
    )]
    Unreachable {
        /// The server's address.
        url: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The answer is not that of a Duly server.
    #[error(
        "{url} answered with status {status}, but not as a Duly server does; check the address \
         given by --server or DULY_SERVER, and any proxy on the way"
    )]
    Unexpected {
        /// The server's address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// How long to wait before the next try, if the answer says so.
        retry_after: Option<Duration>,
        /// Why a successful answer could not be read.
        source: Option<serde_json::Error>,
    },
}

impl Error {
    /// The stable code of the server's refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem { problem, .. } => Some(&problem.code),
            Self::BadAddress { .. }
            | Self::BadToken
            | Self::BadAuthorities
            | Self::Unreachable { .. }
            | Self::Unexpected { .. } => None,
        }
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem { problem, .. } => Some(problem.status),
            Self::Unexpected { status, .. } => Some(*status),
            Self::BadAddress { .. }
            | Self::BadToken
            | Self::BadAuthorities
            | Self::Unreachable { .. } => None,
        }
    }

    /// How long the server asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } | Self::Unexpected { retry_after, .. } => {
                *retry_after
            }
            Self::BadAddress { .. }
            | Self::BadToken
            | Self::BadAuthorities
            | Self::Unreachable { .. } => None,
        }
    }

    /// Whether the same call may succeed later. A submit is safe to repeat only with an idempotency
    /// key: the first one may have been stored although its answer was lost.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Problem { problem, .. } => matches!(problem.status, 429 | 503),
            Self::Unreachable { .. } => true,
            Self::Unexpected { status, .. } => matches!(status, 429 | 502..=504),
            Self::BadAddress { .. } | Self::BadToken | Self::BadAuthorities => false,
        }
    }
}
