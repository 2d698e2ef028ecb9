//! `GET /events`

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use duly_client::wire::StreamMessage;
use duly_core::event::Position;
use duly_core::filter::EventFilter;
use duly_engine::events::Begin;

use crate::access::Access;
use crate::app::App;
use crate::caller::{Caller, Credentials};
use crate::error::{ApiError, Code};
use crate::peer::Peer;
use crate::query;
use crate::responses::{InvalidPosition, TooManyStreams};
use crate::routes::tasks::get::patience;
use crate::stream::{Ending, EventSource, EventStream, Sources, Topic, read_topics};

/// The place of the last message, which browsers send by themselves.
const LAST_EVENT_ID: &str = "last-event-id";
/// Tells a proxy to pass every piece on at once.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The parameters that are about the full stream alone.
const OF_EVENTS: [&str; 3] = ["filter", "since", "lastEventId"];

/// Follow what happens
///
/// Server-sent events, until one side ends the connection. The messages `stats`, `task` and `workflow` come
/// at first and then with every change, `stats` once a second; `event` is an event of the full stream, a
/// CloudEvent as `GET /events/schemas` describes it. `gone` names a topic of which there is no such task or
/// workflow, `reset` says that events were missed, and `closed` says why the server ends the stream. A comment
/// comes at least every 15 seconds.
///
/// Events of the full stream are kept for 5 minutes. Their `id` is a place: sent as `Last-Event-ID`, it resumes
/// behind it.
#[utoipa::path(
    get, path = "/events", operation_id = "stream_events", tag = "events",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("topics" = String, Query, example = "stats,events",
            description = "What to follow, at most 100: `stats`, `events` for the full stream, \
                `task:{id}`, `workflow:{id}`, with commas between them"),
        ("filter" = Option<String>, Query, example = "event:task.failed queue:mail",
            description = "Which events of the full stream; all if absent"),
        ("since" = Option<String>, Query, example = "30s",
            description = "Begins the full stream with what is kept from then on: an instant, or a \
                time ago. With what comes if absent"),
        ("lastEventId" = Option<String>, Query,
            description = "The same as the header, for clients that send none"),
        ("Last-Event-ID" = Option<String>, Header,
            description = "Resumes the full stream behind the message with this `id`"),
        ("wait" = Option<String>, Query, example = "100ms",
            description = "Ends the stream after this time, at most 60 s: `30s` or `PT30S`. It goes on if absent"),
        ("tenant" = Option<String>, Query, example = "default",
            description = "The same as the header `Duly-Tenant`, for clients that send none"),
    ),
    responses(
        (status = 200, description = "The stream", content_type = "text/event-stream", body = StreamMessage),
        InvalidPosition,
        TooManyStreams,
    ),
)]
pub(crate) async fn stream_events(
    State(app): State<App>,
    caller: Caller,
    credentials: Credentials,
    request: Request,
) -> Result<Response, ApiError> {
    let names = ["topics", "filter", "since", "lastEventId", "wait"];
    let [topics, filter, since, last_id, wait] = query::read(request.uri(), names)?;
    let topics = read_topics(topics.as_deref().unwrap_or_default())?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    if !topics.contains(&Topic::Events) {
        refuse_unused([&filter, &since, &last_id])?;
    }
    let filter =
        query::filter(&app, filter.as_deref().unwrap_or_default(), EventFilter::parse).await?;
    // What comes from now on is told in any case.
    let since = match query::since(&app, since).await? {
        Some(since) => Some(since.min(app.engine.now().await?)),
        None => None,
    };
    let last = last_place(request.headers(), last_id)?;
    let peer = Peer::of(&app.config, &request);
    let place = app.stream_places.take(&caller.identity, peer)?;
    let events = match topics.contains(&Topic::Events) {
        true => {
            let begin = match (last, since) {
                // A browser that connects again asks for the same as before, and for what follows.
                (Some(last), _) => Begin::After(last),
                (None, Some(since)) => Begin::Since(since),
                (None, None) => Begin::Now,
            };
            let feed = app.engine.follow_events(caller.tenant.clone(), filter, begin);
            Some(EventSource::open(feed).await?)
        }
        false => None,
    };
    let mut sources = Sources::new(&app.engine, &caller.tenant, events);
    add_topics(&mut sources, topics);
    let ending = Ending::new(&app.engine, credentials.validity, wait);
    let body = Body::from_stream(EventStream::new(sources, ending, place));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    Ok((headers, body).into_response())
}

fn add_topics(sources: &mut Sources, topics: BTreeSet<Topic>) {
    for topic in topics {
        match &topic {
            Topic::Events => {}
            Topic::Stats => sources.add_stats(),
            Topic::Task(id) => sources.add_task(topic.text(), id),
            Topic::Workflow(id) => sources.add_workflow(topic.text(), id),
        }
    }
}

fn refuse_unused(values: [&Option<String>; 3]) -> Result<(), ApiError> {
    match OF_EVENTS.iter().zip(values).find(|(_, value)| value.is_some()) {
        Some((name, _)) => Err(query::invalid(format!(
            "`{name}` is for the topic `events`, which is not asked for"
        ))),
        None => Ok(()),
    }
}

/// The place of the last message that a client has seen. A browser that connects again sends the header,
/// beside the query of its first request.
fn last_place(
    headers: &HeaderMap,
    parameter: Option<String>,
) -> Result<Option<Position>, ApiError> {
    let invalid = || {
        let detail = "`Last-Event-ID` must be the `id` of a message of the stream, or be left out";
        ApiError::new(Code::InvalidPosition, detail)
    };
    let header = match headers.get(LAST_EVENT_ID) {
        Some(value) => Some(value.to_str().map_err(|_| invalid())?.to_owned()),
        None => None,
    };
    let text = header.filter(|text| !text.is_empty()).or(parameter);
    text.map(|text| text.parse().map_err(|_| invalid())).transpose()
}
