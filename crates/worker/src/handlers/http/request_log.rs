//! The line about a request in its attempt's log, also when the attempt is stopped.

use tokio::time::Instant;

use super::request::Request;
use crate::handler::Context;

/// Logs when it is dropped. Leaves out the query and the headers, which may hold secrets.
pub(super) struct RequestLog<'a> {
    context: &'a Context,
    request: &'a Request,
    started: Instant,
    end: Option<String>,
}

impl<'a> RequestLog<'a> {
    pub(super) fn new(context: &'a Context, request: &'a Request) -> Self {
        Self { context, request, started: Instant::now(), end: None }
    }

    /// Sets the result of the request.
    pub(super) fn end(&mut self, end: impl ToString) {
        self.end = Some(end.to_string());
    }
}

impl Drop for RequestLog<'_> {
    fn drop(&mut self) {
        let Request { method, url, .. } = self.request;
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        let end = self.end.as_deref().unwrap_or("no answer");
        let millis = self.started.elapsed().as_millis();
        self.context.log(format_args!(
            "{method} {host}{port}{path}: {end} after {millis} ms",
            path = url.path()
        ));
    }
}
