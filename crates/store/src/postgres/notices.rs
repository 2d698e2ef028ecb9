//! News for the other nodes: where tasks wait from now on. Sent a few milliseconds after the commits
//! that they are about, many at once and beside them, since all commits with news in them wait for
//! each other. A node that is alone sends nothing. News may get lost: every node looks around itself
//! from time to time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foldhash::HashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::error::Result;
use super::pool::Pool;
use super::range::Range;

/// The channel that all nodes listen to.
pub(super) const CHANNEL: &str = "duly";
/// How long news wait for more.
const GATHER: Duration = Duration::from_millis(5);
/// The server takes less than 8,000 bytes at once.
const BYTES: usize = 7_900;

/// What waits to be sent.
#[derive(Debug, Default)]
pub(super) struct Notices {
    news: Mutex<News>,
    bell: Notify,
    /// Whether another node listens, as far as is known.
    heard: AtomicBool,
}

/// Where tasks wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// The earliest new run time of each range.
    pub(super) ranges: HashMap<Range, i64>,
    /// From when on something can be claimed that is not named.
    pub(super) anywhere: Option<i64>,
    /// Whether leases were taken back whose holders are to be told.
    pub(super) revoked: bool,
}

/// The word for leases that were taken back.
const REVOKED: &str = "!";

impl News {
    pub(super) fn add(&mut self, range: Range, run_at: i64) {
        let known = self.ranges.entry(range).or_insert(run_at);
        *known = run_at.min(*known);
    }

    pub(super) fn anywhere(&mut self, due: i64) {
        self.anywhere = Some(self.anywhere.map_or(due, |known| known.min(due)));
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.anywhere.is_none() && !self.revoked
    }

    /// As text, after the name of who sends it. What does not fit is not named.
    fn encode(&self, from: Uuid) -> String {
        let mut text = from.to_string();
        if self.revoked {
            text.push(' ');
            text.push_str(REVOKED);
        }
        let mut unnamed = self.anywhere;
        for (Range { lane, rank }, at) in &self.ranges {
            let one = format!(" {lane}:{rank}:{at}");
            if text.len() + one.len() + 24 <= BYTES {
                text.push_str(&one);
            } else {
                unnamed = Some(unnamed.map_or(*at, |known| known.min(*at)));
            }
        }
        if let Some(at) = unnamed {
            text.push_str(&format!(" *{at}"));
        }
        text
    }

    /// Reads what another node has sent; nothing of what makes no sense.
    pub(super) fn decode(text: &str) -> Option<(Uuid, Self)> {
        let mut words = text.split(' ');
        let from = words.next()?.parse().ok()?;
        let mut news = Self::default();
        for word in words {
            if word == REVOKED {
                news.revoked = true;
                continue;
            }
            if let Some(at) = word.strip_prefix('*') {
                news.anywhere(at.parse().ok()?);
                continue;
            }
            let mut parts = word.split(':');
            let range =
                Range { lane: parts.next()?.parse().ok()?, rank: parts.next()?.parse().ok()? };
            news.add(range, parts.next()?.parse().ok()?);
        }
        Some((from, news))
    }
}

impl Notices {
    /// Another node listens, or none does.
    pub(super) fn set_heard(&self, heard: bool) {
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// Adds what is to be told, if there is anybody to tell.
    pub(super) fn tell(&self, add: impl FnOnce(&mut News)) {
        if self.heard.load(Ordering::Relaxed) {
            add(&mut self.news.lock());
            self.bell.notify_one();
        }
    }

    /// Sends news as they come, for ever.
    pub(super) async fn run(&self, node: Uuid, pool: &Pool) {
        loop {
            self.bell.notified().await;
            tokio::time::sleep(GATHER).await;
            let news = std::mem::take(&mut *self.news.lock());
            if news.is_empty() {
                continue;
            }
            if let Err(fault) = send(pool, &news.encode(node)).await {
                tracing::debug!(%fault, "other nodes were not told what waits");
            }
        }
    }
}

/// Lets all nodes know that this one is there.
pub(super) async fn greet(pool: &Pool, node: Uuid) -> Result<()> {
    send(pool, &News::default().encode(node)).await
}

async fn send(pool: &Pool, text: &str) -> Result<()> {
    let client = pool.get().await?;
    // Nothing is lost if the server forgets it in a crash.
    let send =
        format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, '{text}'; COMMIT");
    Ok(client.batch_execute(&send).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_survive_their_text() {
        let mut news = News::default();
        let from = Uuid::from_u128(7);
        assert_eq!(News::decode(&news.encode(from)), Some((from, News::default())));
        news.add(Range { lane: 3, rank: 14 }, 90);
        news.add(Range { lane: 3, rank: 14 }, 70);
        news.add(Range { lane: i32::MAX, rank: 0 }, i64::MAX);
        news.anywhere(5);
        news.revoked = true;
        assert_eq!(News::decode(&news.encode(from)), Some((from, news)));
        assert_eq!(News::decode("nonsense 1:2:3"), None);
        assert_eq!(News::decode(&format!("{from} 1:2")), None);
    }

    #[test]
    fn what_does_not_fit_is_not_named() {
        let mut news = News::default();
        for lane in 0..100_000 {
            news.add(Range { lane, rank: 4 }, 1_900_000_000_000 + i64::from(lane));
        }
        let text = news.encode(Uuid::from_u128(7));
        assert!(text.len() <= BYTES);
        let (_, read) = News::decode(&text).unwrap();
        assert!(read.ranges.len() > 100 && read.anywhere.is_some());
        let unnamed = news.ranges.iter().filter(|(range, _)| !read.ranges.contains_key(range));
        assert_eq!(read.anywhere, unnamed.map(|(_, at)| *at).min());
    }
}
