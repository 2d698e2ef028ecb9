//! A client of the REST interface over HTTP.

mod workers;

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use duly_core::name::TenantName;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH, RETRY_AFTER,
};
use reqwest::{Certificate, Method, RequestBuilder, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::wire::{
    BatchAnswer, CancelRequest, EditRequest, Readiness, ReplayRequest, SubmitRequest, TaskPage,
    TaskView, Version,
};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take beyond the time that the server is asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Names the tenant to act for.
const TENANT: HeaderName = HeaderName::from_static("duly-tenant");

/// The place in a stream after which it goes on.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A client of one server. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
}

/// What a client tells the server with every request, and whom it trusts.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// The token or API key.
    pub token: Option<String>,
    /// The tenant to act for, where the token is for all of them.
    pub tenant: Option<TenantName>,
    /// Certificates in PEM of authorities that are trusted beside those of the system.
    pub authorities: Option<Vec<u8>>,
}

impl ClientOptions {
    /// Those that only send a token.
    pub fn token(token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..Self::default() }
    }

    fn headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_| Error::BadToken)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(tenant) = &self.tenant {
            let value = HeaderValue::from_str(tenant.as_str());
            headers.insert(TENANT, value.expect("a name of a tenant is plain ASCII"));
        }
        Ok(headers)
    }
}

impl Client {
    /// A client of the server at `base_url`, which sends the token with every request.
    pub fn new(base_url: &str, token: Option<&str>) -> Result<Self, Error> {
        Self::with_options(base_url, &ClientOptions::token(token))
    }

    /// The same with all that can be told.
    pub fn with_options(base_url: &str, options: &ClientOptions) -> Result<Self, Error> {
        let base = parse_base(base_url)?;
        install_crypto_provider();
        let mut builder = reqwest::Client::builder()
            .default_headers(options.headers()?)
            .user_agent(concat!("duly/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true);
        if base.scheme() == "http" {
            // Loading the system's certificates takes longer than a request.
            builder = builder.tls_certs_only([]);
        } else if let Some(pem) = &options.authorities {
            let trusted = Certificate::from_pem_bundle(pem).map_err(|_| Error::BadAuthorities)?;
            builder = builder.tls_certs_merge(trusted);
        }
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let url = base.to_string();
        let http = builder.build().map_err(|source| Error::Unreachable { url, source })?;
        Ok(Self { base, http })
    }

    /// The server's address.
    pub fn base_url(&self) -> &Url {
        &self.base
    }

    /// Whether the server runs on this machine.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Submits one task; after `Ok` it is durable.
    pub async fn submit(&self, task: &SubmitRequest) -> Result<TaskView, Error> {
        let url = self.url(&["v1", "tasks"]);
        self.call(Method::POST, url, Some(encode(task)), Duration::ZERO).await
    }

    /// Submits one task and waits for its outcome, at most this long. Returns the task as it is
    /// then.
    pub async fn submit_and_wait(
        &self,
        task: &SubmitRequest,
        wait: Duration,
    ) -> Result<TaskView, Error> {
        let mut url = self.url(&["v1", "tasks"]);
        append_wait(&mut url, Some(wait));
        self.call(Method::POST, url, Some(encode(task)), wait).await
    }

    /// Submits many tasks; each is accepted or refused by itself.
    pub async fn submit_batch(&self, tasks: &[SubmitRequest]) -> Result<BatchAnswer, Error> {
        let url = self.url(&["v1", "tasks", "batch"]);
        self.call(Method::POST, url, Some(encode(tasks)), Duration::ZERO).await
    }

    /// Reads one task, by its id or a unique prefix of it; with `wait`, when its run has ended or
    /// the time is over.
    pub async fn get_task(
        &self,
        id: impl Display,
        wait: Option<Duration>,
    ) -> Result<TaskView, Error> {
        let mut url = self.url(&["v1", "tasks", &id.to_string()]);
        append_wait(&mut url, wait);
        self.call(Method::GET, url, None, wait.unwrap_or_default()).await
    }

    /// Ends a task that waits or runs.
    pub async fn cancel_task(
        &self,
        id: impl Display,
        order: &CancelRequest,
    ) -> Result<TaskView, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "cancel"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Opens the next run of a task that has ended.
    pub async fn replay_task(
        &self,
        id: impl Display,
        order: &ReplayRequest,
    ) -> Result<TaskView, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "replay"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Changes a task that waits.
    pub async fn edit_task(
        &self,
        id: impl Display,
        change: &EditRequest,
    ) -> Result<TaskView, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string()]);
        self.call(Method::PATCH, url, Some(encode(change)), Duration::ZERO).await
    }

    /// Ends the back-off of a task that waits for its next attempt.
    pub async fn retry_task(&self, id: impl Display) -> Result<TaskView, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "retry"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }

    /// Deletes a task that has ended.
    pub async fn delete_task(&self, id: impl Display) -> Result<(), Error> {
        let url = self.url(&["v1", "tasks", &id.to_string()]);
        self.accepted(Method::DELETE, url, None, Duration::ZERO).await.map(drop)
    }

    /// Reads one page of the tasks that match a filter such as `status:FAILED queue:mail`, by first
    /// due time, newest first. An empty filter matches all tasks. A page may be empty although more
    /// pages follow: then it has a cursor.
    pub async fn list_tasks(
        &self,
        filter: &str,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<TaskPage, Error> {
        let mut url = self.url(&["v1", "tasks"]);
        append_page(&mut url, filter, limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// The version of the server.
    pub async fn version(&self) -> Result<Version, Error> {
        self.call(Method::GET, self.url(&["version"]), None, Duration::ZERO).await
    }

    /// Whether the server is ready for requests. A server that is not ready is not an error.
    pub async fn ready(&self) -> Result<Readiness, Error> {
        let url = self.url(&["readyz"]);
        let answer = self.send(Method::GET, url, None, Duration::ZERO).await?;
        self.read(&answer)
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        wait: Duration,
    ) -> Result<T, Error> {
        let answer = self.accepted(method, url, body, wait).await?;
        self.read(&answer)
    }

    /// The same with `If-Match`: the server refuses it unless the resource is at this version.
    pub(crate) async fn call_if<T: DeserializeOwned>(
        &self,
        version: u64,
        method: Method,
        url: Url,
        body: Vec<u8>,
    ) -> Result<T, Error> {
        self.call_with((IF_MATCH, format!("\"{version}\"")), method, url, body).await
    }

    /// The same with a header of the caller's choice.
    pub(crate) async fn call_with<T: DeserializeOwned>(
        &self,
        (name, value): (HeaderName, String),
        method: Method,
        url: Url,
        body: Vec<u8>,
    ) -> Result<T, Error> {
        let request = self.request(method, url, Some(body), Duration::ZERO);
        let request = request.header(name, value);
        let answer = self.check_status(self.deliver(request).await?)?;
        self.read(&answer)
    }

    /// The answer to a request that was not refused.
    pub(crate) async fn accepted(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        wait: Duration,
    ) -> Result<Answer, Error> {
        self.check_status(self.send(method, url, body, wait).await?)
    }

    /// Makes a request whose answer is read piece by piece, without a time limit.
    pub(crate) async fn open(&self, method: Method, url: Url) -> Result<reqwest::Response, Error> {
        self.begin(self.http.request(method, url)).await
    }

    /// Opens a stream of events, behind this place if there is one.
    pub(crate) async fn open_stream(
        &self,
        url: Url,
        place: Option<&str>,
    ) -> Result<reqwest::Response, Error> {
        let request = self.http.get(url).header(ACCEPT, "text/event-stream");
        self.begin(match place {
            Some(place) => request.header(LAST_EVENT_ID, place),
            None => request,
        })
        .await
    }

    async fn begin(&self, request: RequestBuilder) -> Result<reqwest::Response, Error> {
        let sent = request.send().await;
        let response = sent.map_err(|source| self.unreachable(source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        self.check_status(self.receive(response).await?)?;
        Err(self.not_an_answer())
    }

    /// The answer, or the error that its status means.
    fn check_status(&self, answer: Answer) -> Result<Answer, Error> {
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        match serde_json::from_slice(&answer.body) {
            Ok(problem) => Err(Error::Problem { problem, retry_after: answer.retry_after }),
            Err(_) => Err(self.unexpected(&answer, None)),
        }
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        wait: Duration,
    ) -> Result<Answer, Error> {
        self.deliver(self.request(method, url, body, wait)).await
    }

    fn request(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        wait: Duration,
    ) -> RequestBuilder {
        let request = self.http.request(method, url).timeout(ANSWER_TIMEOUT + wait);
        match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body),
            None => request,
        }
    }

    async fn deliver(&self, request: RequestBuilder) -> Result<Answer, Error> {
        let sent = request.send().await;
        self.receive(sent.map_err(|source| self.unreachable(source))?).await
    }

    /// Reads a whole answer.
    async fn receive(&self, response: reqwest::Response) -> Result<Answer, Error> {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = response.bytes().await.map_err(|source| self.unreachable(source))?;
        Ok(Answer { status, retry_after, body: body.into() })
    }

    fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Error> {
        let unreadable = |source| self.unexpected(answer, Some(source));
        serde_json::from_slice(&answer.body).map_err(unreadable)
    }

    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("a base address with a host has a path")
            .pop_if_empty()
            .extend(segments);
        url
    }

    fn unreachable(&self, source: reqwest::Error) -> Error {
        Error::Unreachable { url: self.base.to_string(), source }
    }

    /// The error for a success whose content does not match the request.
    pub(crate) fn not_an_answer(&self) -> Error {
        self.unexpected(&Answer { status: 200, retry_after: None, body: Vec::new() }, None)
    }

    fn unexpected(&self, answer: &Answer, source: Option<serde_json::Error>) -> Error {
        let Answer { status, retry_after, .. } = *answer;
        Error::Unexpected { url: self.base.to_string(), status, retry_after, source }
    }
}

pub(crate) struct Answer {
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

/// The delay that a server asks for in seconds. A date is ignored, since clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn parse_base(text: &str) -> Result<Url, Error> {
    let bad = || Error::BadAddress { url: text.to_owned() };
    let url = Url::parse(text).map_err(|_| bad())?;
    if !url.username().is_empty() || url.password().is_some() {
        // Not echoed: the password would end up in logs.
        return Err(Error::BadAddress { url: "an address with a password in it".to_owned() });
    }
    let plain = url.query().is_none() && url.fragment().is_none();
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host() && plain;
    if usable { Ok(url) } else { Err(bad()) }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// TLS needs one provider per process. Any will do, so an installed one is kept.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// Adds the time that the server may wait before it answers.
pub(crate) fn append_wait(url: &mut Url, wait: Option<Duration>) {
    if let Some(wait) = wait {
        url.query_pairs_mut().append_pair("wait", &format!("{}ms", wait.as_millis()));
    }
}

/// Adds the filter and the page of a list.
pub(crate) fn append_page(url: &mut Url, filter: &str, limit: Option<u32>, cursor: Option<&str>) {
    let limit = limit.map(|limit| limit.to_string());
    let filter = Some(filter).filter(|filter| !filter.is_empty());
    let pairs = [("filter", filter), ("limit", limit.as_deref()), ("cursor", cursor)];
    for (name, value) in pairs {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("wire types can always be written as JSON")
}

#[cfg(test)]
mod tests;
