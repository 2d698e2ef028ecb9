//! Schedules over HTTP.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{IF_MATCH, IF_NONE_MATCH};

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{
    BackfillAnswer, BackfillRequest, NextSlots, PauseRequest, SchedulePage, SchedulePreview,
    ScheduleView, SlotPage, SlotView,
};

/// Which schedules to list.
#[derive(Clone, Debug, Default)]
pub struct ScheduleQuery {
    /// Only those in this state.
    pub status: Option<String>,
    /// Only those with these labels.
    pub labels: Vec<(String, String)>,
    /// How many.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// What must be true of a schedule for it to be created or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    None,
    /// There is none of this name.
    Absent,
    /// It has this version.
    Version(u64),
}

impl Client {
    /// Creates or replaces a schedule, as JSON text like [`crate::wire::ScheduleRequest`]. Safe to repeat.
    pub async fn put_schedule(
        &self,
        name: &str,
        body: String,
        expected: Precondition,
    ) -> Result<ScheduleView, Error> {
        let (method, url) = (Method::PUT, self.url(&["v1", "schedules", name]));
        let body = body.into_bytes();
        match expected {
            Precondition::None => self.call(method, url, Some(body), Duration::ZERO).await,
            Precondition::Absent => {
                self.call_with((IF_NONE_MATCH, "*".to_owned()), method, url, body).await
            }
            Precondition::Version(version) => {
                self.call_with((IF_MATCH, format!("\"{version}\"")), method, url, body).await
            }
        }
    }

    /// Says when a definition would fire, without keeping it.
    pub async fn preview_schedule(&self, body: String) -> Result<SchedulePreview, Error> {
        let url = self.url(&["v1", "schedules", "preview"]);
        self.call(Method::POST, url, Some(body.into_bytes()), Duration::ZERO).await
    }

    /// Reads a schedule.
    pub async fn get_schedule(&self, name: &str) -> Result<ScheduleView, Error> {
        let url = self.url(&["v1", "schedules", name]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads one page of schedules, by name.
    pub async fn list_schedules(&self, query: &ScheduleQuery) -> Result<SchedulePage, Error> {
        let mut url = self.url(&["v1", "schedules"]);
        append_page(&mut url, "", query.limit, query.cursor.as_deref());
        if let Some(status) = &query.status {
            url.query_pairs_mut().append_pair("status", status);
        }
        for (key, value) in &query.labels {
            url.query_pairs_mut().append_pair(&format!("label.{key}"), value);
        }
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Deletes a schedule. What it has started goes on.
    pub async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        let url = self.url(&["v1", "schedules", name]);
        self.accepted(Method::DELETE, url, None, Duration::ZERO).await.map(drop)
    }

    /// Pauses a schedule.
    pub async fn pause_schedule(
        &self,
        name: &str,
        order: &PauseRequest,
    ) -> Result<ScheduleView, Error> {
        let url = self.url(&["v1", "schedules", name, "pause"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Ends the pause of a schedule.
    pub async fn resume_schedule(&self, name: &str) -> Result<ScheduleView, Error> {
        let url = self.url(&["v1", "schedules", name, "resume"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }

    /// Runs what a schedule runs, now.
    pub async fn trigger_schedule(&self, name: &str) -> Result<SlotView, Error> {
        let url = self.url(&["v1", "schedules", name, "trigger"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }

    /// The next slots of a schedule.
    pub async fn next_slots(&self, name: &str, count: u32) -> Result<NextSlots, Error> {
        let mut url = self.url(&["v1", "schedules", name, "next"]);
        url.query_pairs_mut().append_pair("count", &count.to_string());
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// What became of the last slots of a schedule, newest slot first.
    pub async fn slot_runs(&self, name: &str) -> Result<SlotPage, Error> {
        let url = self.url(&["v1", "schedules", name, "runs"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Runs slots of the past, or tells which they would be.
    pub async fn backfill_schedule(
        &self,
        name: &str,
        order: &BackfillRequest,
    ) -> Result<BackfillAnswer, Error> {
        let url = self.url(&["v1", "schedules", name, "backfill"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }
}
