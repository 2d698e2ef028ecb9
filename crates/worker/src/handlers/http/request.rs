//! Turns a payload into a request that is safe to send. Finds all errors of the payload before a
//! connection is opened.

use std::collections::BTreeMap;
use std::net::IpAddr;

use duly_core::http_header;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::handler::{Context, HandlerError};

/// The request of a payload, checked.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    expected: Option<Vec<u16>>,
}

impl Request {
    /// Reads the payload and adds the headers that every attempt carries.
    pub(super) fn new(context: &Context) -> Result<Self, HandlerError> {
        let payload: Payload = context.payload()?;
        let has_type = payload.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
        let (body, is_json) = match payload.body {
            Some(json) => {
                let (text, is_json) = body_text(&json);
                (Some(text), is_json)
            }
            None => (None, false),
        };
        let mut headers = own_headers(context);
        if is_json && !has_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        add_headers(&mut headers, payload.headers)?;
        let method = match payload.method {
            Some(name) => method(&name)?,
            None if body.is_some() => Method::POST,
            None => Method::GET,
        };
        let expected = payload.expect_status.map(statuses).transpose()?;
        Ok(Self { method, url: url(&payload.url)?, headers, body, expected })
    }

    /// The address in the URL, if its host is an address, so that no resolver is used. The parser
    /// has normalised every spelling of an IPv4 address.
    pub(super) fn literal_address(&self) -> Option<IpAddr> {
        let host = self.url.host_str()?;
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// The port that the URL means.
    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().expect("http and https have a default port")
    }

    /// Whether this status is a success.
    pub(super) fn expects(&self, status: StatusCode) -> bool {
        match &self.expected {
            Some(expected) => expected.contains(&status.as_u16()),
            None => status.is_success(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Payload {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Box<RawValue>>,
    expect_status: Option<Expect>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expectStatus must be a status or a list of them")]
enum Expect {
    One(u16),
    AnyOf(Vec<u16>),
}

/// The text to send, and whether it is JSON: the content of a string, any other value as its JSON
/// text.
fn body_text(json: &RawValue) -> (String, bool) {
    match serde_json::from_str::<String>(json.get()) {
        Ok(text) => (text, false),
        Err(_) => (json.get().to_owned(), true),
    }
}

fn own_headers(context: &Context) -> HeaderMap {
    let key = HeaderValue::from_str(&context.idempotency_key()).expect("an id and a number");
    let id = HeaderValue::from_str(&context.task().to_string()).expect("an id");
    HeaderMap::from_iter([
        (HeaderName::from_static("duly-task-id"), id),
        (HeaderName::from_static("duly-epoch"), context.epoch().into()),
        (HeaderName::from_static("duly-attempt"), context.attempt().into()),
        (HeaderName::from_static("idempotency-key"), key),
    ])
}

fn add_headers(
    headers: &mut HeaderMap,
    wanted: BTreeMap<String, String>,
) -> Result<(), HandlerError> {
    for (name, value) in wanted {
        let bad = |why: &str| HandlerError::invalid_payload(format!("the header {name:?} {why}"));
        http_header::check(&name, &value).map_err(bad)?;
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("has a bad name"))?;
        let value = HeaderValue::from_str(&value).map_err(|_| bad("has a bad value"))?;
        if headers.insert(parsed, value).is_some() {
            return Err(bad("is given twice"));
        }
    }
    Ok(())
}

fn method(name: &str) -> Result<Method, HandlerError> {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
        HandlerError::invalid_payload(
            "method must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
        )
    })
}

fn url(text: &str) -> Result<Url, HandlerError> {
    let url =
        Url::parse(text).map_err(|why| HandlerError::invalid_payload(format!("url: {why}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(HandlerError::invalid_payload("url must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(HandlerError::invalid_payload("url must not hold a user name or password"));
    }
    Ok(url)
}

fn statuses(expect: Expect) -> Result<Vec<u16>, HandlerError> {
    let statuses = match expect {
        Expect::One(status) => vec![status],
        Expect::AnyOf(statuses) => statuses,
    };
    if statuses.is_empty() || !statuses.iter().all(|status| (200..600).contains(status)) {
        return Err(HandlerError::invalid_payload("expectStatus must lie between 200 and 599"));
    }
    Ok(statuses)
}
