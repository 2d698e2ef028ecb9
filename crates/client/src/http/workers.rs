//! The calls of remote workers. [`crate::RemoteSource`] makes them by the rules of the protocol.

use std::time::Duration;

use duly_core::id::SessionId;
use reqwest::Method;

use super::{Client, encode};
use crate::error::Error;
use crate::wire::lease::duration;
use crate::wire::{
    ClaimAnswer, ClaimRequest, ExtendAnswer, ExtendRequest, FinishAnswer, FinishRequest,
    HeartbeatAnswer, HeartbeatRequest, LogsRequest, ProgressRequest, RegisterRequest, Registration,
    ReportAnswer,
};

impl Client {
    /// Opens a session.
    pub async fn register(&self, worker: &RegisterRequest) -> Result<Registration, Error> {
        let url = self.url(&["v1", "sessions"]);
        self.call(Method::POST, url, Some(encode(worker)), Duration::ZERO).await
    }

    /// Keeps a session and all its leases alive.
    pub async fn heartbeat(
        &self,
        session: SessionId,
        heartbeat: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, Error> {
        let url = self.url(&["v1", "sessions", &session.to_string(), "heartbeat"]);
        let wait = heartbeat.wait_seconds.and_then(duration).unwrap_or_default();
        self.call(Method::POST, url, Some(encode(heartbeat)), wait).await
    }

    /// Waits for leases; none when the time is over. Safe to repeat with the same number.
    pub async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimAnswer, Error> {
        let url = self.url(&["v1", "leases"]);
        let wait = claim.wait_seconds.and_then(duration).unwrap_or_default();
        self.call(Method::POST, url, Some(encode(claim)), wait).await
    }

    /// Commits outcomes. Safe to repeat: the answer is the same.
    pub async fn finish(&self, finish: &FinishRequest) -> Result<FinishAnswer, Error> {
        let url = self.url(&["v1", "leases", "finish"]);
        self.call(Method::POST, url, Some(encode(finish)), Duration::ZERO).await
    }

    /// Reports the progress of attempts.
    pub async fn report_progress(&self, report: &ProgressRequest) -> Result<ReportAnswer, Error> {
        let url = self.url(&["v1", "leases", "progress"]);
        self.call(Method::POST, url, Some(encode(report)), Duration::ZERO).await
    }

    /// Reports log lines of attempts.
    pub async fn report_logs(&self, report: &LogsRequest) -> Result<ReportAnswer, Error> {
        let url = self.url(&["v1", "leases", "logs"]);
        self.call(Method::POST, url, Some(encode(report)), Duration::ZERO).await
    }

    /// Moves the deadlines of leases.
    pub async fn extend(&self, extend: &ExtendRequest) -> Result<ExtendAnswer, Error> {
        let url = self.url(&["v1", "leases", "extend"]);
        self.call(Method::POST, url, Some(encode(extend)), Duration::ZERO).await
    }

    /// Ends a session and releases its leases.
    pub async fn end_session(&self, session: SessionId) -> Result<(), Error> {
        let url = self.url(&["v1", "sessions", &session.to_string()]);
        self.accepted(Method::DELETE, url, None, Duration::ZERO).await?;
        Ok(())
    }
}
