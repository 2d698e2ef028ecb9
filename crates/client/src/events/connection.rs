//! One connection of a stream: messages as they come, until it is lost.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use reqwest::Response;
use sse_stream::SseByteStream;
use tokio::time::Instant;

use super::SILENCE;
use super::item::RawItem;

pub(super) struct Connection {
    blocks: SseByteStream<BoxStream<'static, io::Result<Bytes>>>,
    since: Instant,
}

/// What a connection gives.
pub(super) enum Received {
    /// All was received up to this place.
    Place(String),
    /// A message, with its place if it is one of the full stream.
    Message { place: Option<String>, item: RawItem },
    /// Nothing any more, and why.
    End(String),
}

impl Connection {
    pub(super) fn new(response: Response) -> Self {
        let pieces = unfold(response, async |mut response| {
            let piece = match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(piece) => piece.map_err(io::Error::other),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            Some((piece.transpose()?, response))
        });
        Self { blocks: SseByteStream::new(pieces.boxed()), since: Instant::now() }
    }

    /// How long there has been this connection.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// The next thing. Dropping the call loses nothing.
    pub(super) async fn next(&mut self) -> Received {
        loop {
            let block = match self.blocks.next().await {
                Some(Ok(block)) => block,
                Some(Err(_)) => return Received::End("the connection was lost".to_owned()),
                None => return Received::End("the server has ended the stream".to_owned()),
            };
            match (block.event, block.data, block.id) {
                (Some(name), Some(data), place) => {
                    return Received::Message { place, item: RawItem { name, data } };
                }
                (_, _, Some(place)) => return Received::Place(place),
                _ => {}
            }
        }
    }
}
