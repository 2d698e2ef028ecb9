//! Notifies the other nodes where tasks wait from now on. A notification is sent a few milliseconds after
//! the commits that it is about, many at once and in its own transaction, since all commits that notify
//! wait for each other. A node that is alone sends nothing. Notifications may get lost: every node polls.

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
/// How long a notification waits for more to send with it.
const GATHER: Duration = Duration::from_millis(5);
/// The server accepts less than 8,000 bytes per notification.
const BYTES: usize = 7_900;

/// Collects what is to be sent.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    waiting: Mutex<Notification>,
    bell: Notify,
    /// Whether another node listens, as far as this one knows.
    has_listeners: AtomicBool,
}

/// Where tasks wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Notification {
    /// The earliest new run time of each range.
    pub(super) ranges: HashMap<Range, i64>,
    /// From when on tasks can be claimed that `ranges` does not name.
    pub(super) anywhere: Option<i64>,
    /// Whether leases were revoked whose holders are to be notified.
    pub(super) revoked: bool,
    /// Whether events were written.
    pub(super) told: bool,
}

/// The word for revoked leases.
const REVOKED: &str = "!";
/// The word for events.
const TOLD: &str = "+";

impl Notification {
    pub(super) fn add(&mut self, range: Range, run_at: i64) {
        let known = self.ranges.entry(range).or_insert(run_at);
        *known = run_at.min(*known);
    }

    pub(super) fn anywhere(&mut self, due: i64) {
        self.anywhere = Some(self.anywhere.map_or(due, |known| known.min(due)));
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.anywhere.is_none() && !self.revoked && !self.told
    }

    /// As text, after the id of the node that sends it. Ranges that do not fit are left out, and covered
    /// by `anywhere`.
    fn encode(&self, from: Uuid) -> String {
        let mut text = from.to_string();
        for (word, is_said) in [(REVOKED, self.revoked), (TOLD, self.told)] {
            if is_said {
                text.push(' ');
                text.push_str(word);
            }
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

    /// Reads what another node has sent; `None` if it is malformed.
    pub(super) fn decode(text: &str) -> Option<(Uuid, Self)> {
        let mut words = text.split(' ');
        let from = words.next()?.parse().ok()?;
        let mut notification = Self::default();
        for word in words {
            if word == REVOKED {
                notification.revoked = true;
                continue;
            }
            if word == TOLD {
                notification.told = true;
                continue;
            }
            if let Some(at) = word.strip_prefix('*') {
                notification.anywhere(at.parse().ok()?);
                continue;
            }
            let mut parts = word.split(':');
            let range =
                Range { lane: parts.next()?.parse().ok()?, rank: parts.next()?.parse().ok()? };
            notification.add(range, parts.next()?.parse().ok()?);
        }
        Some((from, notification))
    }
}

impl Notifier {
    /// Another node listens, or none does.
    pub(super) fn set_has_listeners(&self, has_listeners: bool) {
        self.has_listeners.store(has_listeners, Ordering::Relaxed);
    }

    /// Adds what is to be sent, if another node listens.
    pub(super) fn notify(&self, add: impl FnOnce(&mut Notification)) {
        if self.has_listeners.load(Ordering::Relaxed) {
            add(&mut self.waiting.lock());
            self.bell.notify_one();
        }
    }

    /// Sends what is added, for ever.
    pub(super) async fn run(&self, node: Uuid, pool: &Pool) {
        loop {
            self.bell.notified().await;
            tokio::time::sleep(GATHER).await;
            let notification = std::mem::take(&mut *self.waiting.lock());
            if notification.is_empty() {
                continue;
            }
            if let Err(fault) = send(pool, &notification.encode(node)).await {
                tracing::debug!(%fault, "other nodes were not notified of what waits");
            }
        }
    }
}

/// Announces this node to all others.
pub(super) async fn announce(pool: &Pool, node: Uuid) -> Result<()> {
    send(pool, &Notification::default().encode(node)).await
}

async fn send(pool: &Pool, text: &str) -> Result<()> {
    let client = pool.get().await?;
    // A notification may get lost in a crash of the server.
    let send =
        format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, '{text}'; COMMIT");
    Ok(client.batch_execute(&send).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_survives_its_text() {
        let mut notification = Notification::default();
        let from = Uuid::from_u128(7);
        assert_eq!(
            Notification::decode(&notification.encode(from)),
            Some((from, Notification::default()))
        );
        notification.add(Range { lane: 3, rank: 14 }, 90);
        notification.add(Range { lane: 3, rank: 14 }, 70);
        notification.add(Range { lane: i32::MAX, rank: 0 }, i64::MAX);
        notification.anywhere(5);
        (notification.revoked, notification.told) = (true, true);
        assert_eq!(Notification::decode(&notification.encode(from)), Some((from, notification)));
        assert_eq!(Notification::decode("nonsense 1:2:3"), None);
        assert_eq!(Notification::decode(&format!("{from} 1:2")), None);
    }

    #[test]
    fn ranges_that_do_not_fit_are_covered_by_anywhere() {
        let mut notification = Notification::default();
        for lane in 0..100_000 {
            notification.add(Range { lane, rank: 4 }, 1_900_000_000_000 + i64::from(lane));
        }
        let text = notification.encode(Uuid::from_u128(7));
        assert!(text.len() <= BYTES);
        let (_, read) = Notification::decode(&text).unwrap();
        assert!(read.ranges.len() > 100 && read.anywhere.is_some());
        let unnamed =
            notification.ranges.iter().filter(|(range, _)| !read.ranges.contains_key(range));
        assert_eq!(read.anywhere, unnamed.map(|(_, at)| *at).min());
    }
}
