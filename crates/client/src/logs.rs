//! Task logs over HTTP.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_wait};
use crate::wire::LogPageView;

/// Which part of a task's logs to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogQuery<'a> {
    /// Only the log of the grant with this epoch.
    pub epoch: Option<u32>,
    /// The `next` of the previous page.
    pub after: Option<&'a str>,
    /// How long to wait for lines while the task runs.
    pub wait: Option<Duration>,
}

impl Client {
    /// Reads a task's logs; with `wait`, when there are lines, its run has ended or the time is
    /// over.
    pub async fn task_logs(
        &self,
        id: impl Display,
        query: LogQuery<'_>,
    ) -> Result<LogPageView, Error> {
        let mut url = self.url(&["v1", "tasks", &id.to_string(), "logs"]);
        let epoch = query.epoch.map(|epoch| epoch.to_string());
        for (name, value) in [("epoch", epoch.as_deref()), ("after", query.after)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        append_wait(&mut url, query.wait);
        self.call(Method::GET, url, None, query.wait.unwrap_or_default()).await
    }
}
