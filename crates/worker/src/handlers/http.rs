//! Sends one HTTP request; the status of the answer decides the outcome.
//!
//! The target is not trusted: the handler dials only permitted addresses and ports, follows no
//! redirects, uses no proxies, unpacks nothing, and reads no more of the answer than it keeps.

mod about;
mod request;
mod request_log;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::Resolve;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response, StatusCode};
use serde::Serialize;

pub(super) use self::about::REFERENCE;
use self::request::Request;
use self::request_log::RequestLog;
use crate::error_chain::chain;
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::outbound::{Guard, Refused, Resolver, SystemNames};

/// The type `http`; its payload is `{method?, url, headers?, body?, expectStatus?}`.
#[derive(Clone, Debug)]
pub struct Http {
    guard: Guard,
    /// A resolver does not see the port, so each kind of port has a client with its own resolver.
    listed_ports: Client,
    other_ports: Client,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a body that become part of the result.
const BODY_BYTES: usize = 64 * 1024;
/// How long the handler reads such a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a body that become part of an error message.
const ERROR_BODY_BYTES: usize = 1024;
/// How long the handler reads such a body.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

impl Http {
    /// A handler that dials what the guard permits.
    pub fn new(guard: Guard) -> Self {
        Self::resolving(guard, Arc::new(SystemNames))
    }

    /// The same with another resolver; the guard checks its answers.
    pub fn resolving(guard: Guard, names: Arc<dyn Resolve>) -> Self {
        // An error means that the process has a provider already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |is_listed| client(&Resolver::new(guard.at(is_listed), Arc::clone(&names)));
        let (listed_ports, other_ports) = (client(true), client(false));
        Self { guard, listed_ports, other_ports }
    }

    /// The address in the URL of a task that passes all checks.
    #[cfg(fuzzing)]
    pub(crate) fn dialled_address(guard: &Guard, context: &Context) -> Option<std::net::IpAddr> {
        let request = Request::new(context).ok()?;
        let address = request.literal_address()?;
        guard.at_port(request.port()).check(address).ok().map(|()| address)
    }

    async fn send(&self, request: &Request) -> Result<Response, HandlerError> {
        let is_listed = self.guard.lists(request.port());
        if let Some(address) = request.literal_address() {
            self.guard.at(is_listed).check(address).map_err(refused)?;
        }
        let client = if is_listed { &self.listed_ports } else { &self.other_ports };
        let mut sending = client
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone());
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        sending.send().await.map_err(transport_error)
    }
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let request = Request::new(&context)?;
        let mut request_log = RequestLog::new(&context, &request);
        let response = self.send(&request).await.inspect_err(|error| request_log.end(error))?;
        let status = response.status();
        request_log.end(status);
        if !request.expects(status) {
            return Err(unexpected(status, response).await);
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = tokio::time::timeout(BODY_TIMEOUT, excerpt(response, BODY_BYTES)).await;
        let (body, truncated) = body.map_err(|_| too_slow())?.map_err(transport_error)?;
        let headers = Headers { content_type };
        Output::json(&Answer { status: status.as_u16(), headers, body, truncated })
    }
}

/// The result of a task.
#[derive(Serialize)]
struct Answer {
    status: u16,
    headers: Headers,
    body: String,
    truncated: bool,
}

#[derive(Serialize)]
struct Headers {
    #[serde(rename = "content-type", skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
}

fn client(resolver: &Resolver) -> Client {
    builder(resolver).build().unwrap_or_else(|error| {
        // Without trusted roots only plain http works.
        tracing::warn!(error = chain(&error), "cannot load root certificates; https will fail");
        builder(resolver)
            .tls_certs_only([])
            .build()
            .expect("without root certificates nothing outside the program is needed")
    })
}

fn builder(resolver: &Resolver) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("duly/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(resolver.clone())
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
}

/// The error for an unexpected status: a retry if it may be temporary.
async fn unexpected(status: StatusCode, response: Response) -> HandlerError {
    let mut message = format!("the answer was {status}");
    let after = retry_after(response.headers());
    // The status decides. A body that does not end must not keep the worker's slot.
    let body = tokio::time::timeout(ERROR_BODY_TIMEOUT, excerpt(response, ERROR_BODY_BYTES)).await;
    if let Ok(Ok((body, _))) = body
        && !body.is_empty()
    {
        message.push_str(": ");
        message.push_str(&body);
    }
    if !status.is_server_error() && !matches!(status.as_u16(), 408 | 409 | 425 | 429) {
        return HandlerError::fail("HTTP_STATUS", message);
    }
    match after {
        Some(after) => HandlerError::retry_after(after, "HTTP_STATUS", message),
        None => HandlerError::retry("HTTP_STATUS", message),
    }
}

/// The delay of a `Retry-After` header: seconds, or a date, which is compared with the target's
/// own clock, since ours may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// The beginning of a body as text, and whether it was cut. Leaving the rest unread closes the
/// connection.
async fn excerpt(mut response: Response, limit: usize) -> reqwest::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await? {
        let kept = chunk.len().min(limit - bytes.len());
        bytes.extend_from_slice(&chunk[..kept]);
        if kept < chunk.len() {
            truncated = true;
            break;
        }
    }
    // Databases refuse U+0000. Replacing it and invalid UTF-8 makes the text longer.
    let mut text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        truncated = true;
    }
    Ok((text, truncated))
}

fn transport_error(error: reqwest::Error) -> HandlerError {
    // A URL may hold secrets, and the task has it anyway.
    let error = error.without_url();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(why) = inner.downcast_ref::<Refused>() {
            return refused(*why);
        }
        cause = inner.source();
    }
    let code = if error.is_connect() { "HTTP_CONNECT" } else { "HTTP_ERROR" };
    HandlerError::retry(code, chain(&error))
}

fn too_slow() -> HandlerError {
    let limit = BODY_TIMEOUT.as_secs();
    HandlerError::retry("HTTP_ERROR", format!("the body took longer than {limit} s"))
}

fn refused(why: Refused) -> HandlerError {
    HandlerError::fail("ADDRESS_REFUSED", why.to_string())
}
