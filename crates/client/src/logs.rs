//! The client's call about logs.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::Client;
use crate::wire::LogPageView;

/// Which part of a task's logs.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogQuery<'a> {
    /// Of one attempt only, by its grant.
    pub epoch: Option<u32>,
    /// Where the page before ended: its `next`.
    pub after: Option<&'a str>,
    /// How long to wait for something, where more may come.
    pub wait: Option<Duration>,
}

impl Client {
    /// Reads what a task has logged; with `wait`, as soon as there is something, its run has ended
    /// or the time is over.
    pub async fn task_logs(
        &self,
        id: impl Display,
        query: LogQuery<'_>,
    ) -> Result<LogPageView, Error> {
        let mut url = self.url(&["v1", "tasks", &id.to_string(), "logs"]);
        let epoch = query.epoch.map(|epoch| epoch.to_string());
        let wait = query.wait.map(|wait| format!("{}ms", wait.as_millis()));
        let pairs =
            [("epoch", epoch.as_deref()), ("after", query.after), ("wait", wait.as_deref())];
        for (name, value) in pairs {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.call(Method::GET, url, None, query.wait.unwrap_or_default()).await
    }
}
