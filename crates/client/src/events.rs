//! Follows a server's stream of events, and comes back to it by itself.

mod connection;
mod item;

use std::time::Duration;

use reqwest::Method;
use tokio::time::Instant;

use self::connection::{Connection, Received};
pub use self::item::StreamItem;
use crate::error::Error;
use crate::http::{Client, append_page};
use crate::wire::{SinkList, SinkView};

/// The first wait before a stream is opened again; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A server says something every 15 seconds; one that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);

/// What to follow.
#[derive(Clone, Debug, Default)]
pub struct StreamQuery {
    /// Topics, such as `stats`, `events` or `task:{id}`.
    pub topics: Vec<String>,
    /// Which events of the full stream; all when empty.
    pub filter: String,
    /// Begins the full stream with what is kept from then on: an instant, or a time ago such as `30s`.
    pub since: Option<String>,
}

/// A stream under way. A connection that is lost is opened again, behind what was received last.
pub struct EventStream {
    client: Client,
    query: StreamQuery,
    connection: Option<Connection>,
    /// The place of what was received last.
    place: Option<String>,
    /// When to connect again, and how long to wait after that.
    connect_at: Instant,
    wait: Duration,
}

impl Client {
    /// Follows what happens. Fails if the stream cannot be opened now.
    pub async fn follow(&self, query: StreamQuery) -> Result<EventStream, Error> {
        let mut stream = self.follow_later(query);
        stream.connect().await?;
        Ok(stream)
    }

    /// The same, but the stream is opened by its first call, and tried again until it works.
    pub fn follow_later(&self, query: StreamQuery) -> EventStream {
        EventStream {
            client: self.clone(),
            query,
            connection: None,
            place: None,
            connect_at: Instant::now(),
            wait: FIRST_WAIT,
        }
    }

    /// All sinks of events: how far behind they are.
    pub async fn list_sinks(&self) -> Result<SinkList, Error> {
        self.call(Method::GET, self.url(&["v1", "sinks"]), None, Duration::ZERO).await
    }

    /// Lets a suspended sink receive events again, from the present on.
    pub async fn resume_sink(&self, name: &str) -> Result<SinkView, Error> {
        let url = self.url(&["v1", "sinks", name, "resume"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }

    /// Removes a sink for good: nothing is kept for it any more.
    pub async fn remove_sink(&self, name: &str) -> Result<(), Error> {
        let url = self.url(&["v1", "sinks", name]);
        self.accepted(Method::DELETE, url, None, Duration::ZERO).await.map(drop)
    }
}

impl EventStream {
    /// What comes next. A lost connection is an item, and so is one that was opened again; an error means
    /// that the server does not want this stream any more. Dropping the call loses nothing.
    pub async fn next(&mut self) -> Result<StreamItem, Error> {
        loop {
            let Some(connection) = &mut self.connection else {
                tokio::time::sleep_until(self.connect_at).await;
                let connected = tokio::time::timeout(SILENCE, self.connect()).await;
                let Ok(connected) = connected else {
                    return Ok(self.interrupted("the server does not answer".to_owned(), None));
                };
                return match connected {
                    Ok(()) => Ok(StreamItem::Resumed),
                    Err(error) if error.is_retryable() => {
                        let asked = error.retry_after();
                        Ok(self.interrupted(error.to_string(), asked))
                    }
                    Err(error) => Err(error),
                };
            };
            match connection.next().await {
                Received::Place(place) => self.note(Some(place)),
                Received::Message { place, item } => {
                    self.note(place);
                    if let Some(closed) = item.closing() {
                        return Ok(self.interrupted(closed.detail, None));
                    }
                    match item.read() {
                        Ok(Some(item)) => return Ok(item),
                        // A newer server says things that this version does not know.
                        Ok(None) => {}
                        Err(_) => return Err(self.client.not_an_answer()),
                    }
                }
                Received::End(why) => return Ok(self.interrupted(why, None)),
            }
        }
    }

    fn note(&mut self, place: Option<String>) {
        self.place = place.or(self.place.take());
    }

    fn interrupted(&mut self, why: String, asked: Option<Duration>) -> StreamItem {
        let lived = self.connection.take().map(|connection| connection.age()).unwrap_or_default();
        if lived > LONGEST_WAIT {
            self.wait = FIRST_WAIT;
        }
        self.connect_at = Instant::now() + asked.unwrap_or_default().max(self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        StreamItem::Interrupted(why)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let StreamQuery { topics, filter, since } = &self.query;
        let mut url = self.client.url(&["v1", "events"]);
        url.query_pairs_mut().append_pair("topics", &topics.join(","));
        append_page(&mut url, filter, None, None);
        if let (Some(since), None) = (since, &self.place) {
            url.query_pairs_mut().append_pair("since", since);
        }
        let response = self.client.open_stream(url, self.place.as_deref()).await?;
        self.connection = Some(Connection::new(response));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
