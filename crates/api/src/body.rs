//! Reading request bodies: bounded in size, in time and in what all of them hold together.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use bytes::{Bytes, BytesMut};
use duly_core::limits::BODY_BYTES;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::App;
use crate::error::{ApiError, Code};

/// Bytes that all bodies may hold together; beyond, callers are told to come back. Small ones count
/// too: one HTTP/2 connection carries many at once.
const BUDGET_BYTES: usize = 256 * 1024 * 1024;
/// How much of a body that is too large is read and thrown away. A caller that still sends would
/// otherwise see a broken connection instead of the answer.
const DISCARD_BYTES: usize = 64 * 1024 * 1024;
const UNIT: usize = 1024;

/// What bodies may still hold.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Self {
        Self::of(BUDGET_BYTES)
    }
}

impl Budget {
    fn of(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }
}

/// A body in memory; its share of the budget is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffered {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reads a whole body of at most `limit` bytes.
pub(crate) async fn read(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Buffered, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_polite = headers.contains_key(EXPECT);
    let reading = async {
        if let Some(length) = declared.filter(|length: &usize| *length > limit) {
            // What is too much to be discarded is not waited for either.
            if !is_polite && length <= DISCARD_BYTES {
                discard(body, 0).await;
            }
            return Err(too_large(limit));
        }
        collect(body, limit, &app.budget).await
    };
    let patience = app.config.body_timeout;
    tokio::time::timeout(patience, reading).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {} s", patience.as_secs());
        Err(ApiError::new(Code::BodyTimeout, detail))
    })
}

/// Reads a body that must be JSON.
pub(crate) async fn read_json(
    app: &App,
    request: Request,
    limit: usize,
) -> Result<Buffered, ApiError> {
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    read(app, &head.headers, body, limit).await
}

/// Reads a body that may be left out; one that is there must be JSON.
pub(crate) async fn read_optional_json(app: &App, request: Request) -> Result<Buffered, ApiError> {
    let (head, body) = request.into_parts();
    let body = read(app, &head.headers, body, BODY_BYTES).await?;
    if !body.bytes.is_empty() {
        require_json(&head.headers)?;
    }
    Ok(body)
}

fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    if media_type(headers)?.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(unsupported("send the body as JSON with Content-Type: application/json"))
}

/// The media type of a body, without parameters; anything but plain content is refused.
pub(crate) fn media_type(headers: &HeaderMap) -> Result<&str, ApiError> {
    let is_plain = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err(unsupported("compressed bodies are not taken; send it without"));
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (first, second) = (types.next(), types.next());
    if second.is_some() {
        return Err(unsupported("the header Content-Type is given twice; send it once"));
    }
    let value = first.and_then(|value| value.to_str().ok()).unwrap_or_default();
    Ok(value.split(';').next().unwrap_or_default().trim_ascii())
}

/// The answer to a body of another type.
pub(crate) fn unsupported(detail: &'static str) -> ApiError {
    ApiError::new(Code::UnsupportedMediaType, detail)
}

async fn collect(mut body: Body, limit: usize, budget: &Budget) -> Result<Buffered, ApiError> {
    let mut whole = Bytes::new();
    let mut buffer = BytesMut::new();
    let mut share: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            ApiError::new(Code::IncompleteBody, "the connection ended before the body did")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = whole.len() + buffer.len() + data.len();
        if length > limit {
            drop((whole, buffer));
            discard(body, length).await;
            return Err(too_large(limit));
        }
        enlarge(&mut share, length, budget)?;
        // Most bodies come in one piece, which is used as it is.
        if whole.is_empty() && buffer.is_empty() {
            whole = data;
        } else {
            buffer.extend_from_slice(&std::mem::take(&mut whole));
            buffer.extend_from_slice(&data);
        }
    }
    let bytes = if buffer.is_empty() { whole } else { buffer.freeze() };
    Ok(Buffered { bytes, _share: share })
}

fn enlarge(
    share: &mut Option<OwnedSemaphorePermit>,
    length: usize,
    budget: &Budget,
) -> Result<(), ApiError> {
    let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let missing = u32::try_from(length.div_ceil(UNIT).saturating_sub(held));
    let missing = missing.expect("a body is within its limit");
    if missing == 0 {
        return Ok(());
    }
    let more = Arc::clone(&budget.0).try_acquire_many_owned(missing).map_err(|_| {
        ApiError::overloaded("too many bodies are being read; try again in a moment")
    })?;
    match share {
        Some(share) => share.merge(more),
        None => *share = Some(more),
    }
    Ok(())
}

async fn discard(mut body: Body, mut read: usize) {
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DISCARD_BYTES {
            return;
        }
    }
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(Code::BodyTooLarge, format!("the body may have at most {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_bodies_share_the_budget() {
        let budget = Budget::of(4 * UNIT);
        let read = || collect(Body::from("{}"), BODY_BYTES, &budget);
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(read().await.unwrap());
        }
        assert_eq!(read().await.unwrap_err().code(), Code::Overloaded);
        held.pop();
        assert_eq!(read().await.unwrap().bytes, "{}");
        drop(held);
        let large = collect(Body::from(vec![b' '; 4 * UNIT]), BODY_BYTES, &budget).await.unwrap();
        assert_eq!(read().await.unwrap_err().code(), Code::Overloaded);
        drop(large);
        let empty = collect(Body::empty(), BODY_BYTES, &Budget::of(0)).await.unwrap();
        assert!(empty.bytes.is_empty(), "nothing takes no room");
    }
}
