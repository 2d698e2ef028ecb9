//! Watches the API keys of requests that go on for long. One loop looks at all of them, through the cache of
//! keys; it sleeps while there are none.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duly_core::key::KeyHash;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::key_cache::KeyCache;

/// From one look to the next. Together with the age of what the cache says it is less than 5 seconds.
const EVERY: Duration = Duration::from_millis(500);

/// The watched keys.
pub(crate) struct KeyWatches {
    cache: Arc<KeyCache>,
    watched: Mutex<HashMap<KeyHash, Weak<CancellationToken>>>,
    /// Rings when the first key is watched.
    any: Notify,
}

/// Interest in one key.
pub struct KeyWatch(Arc<CancellationToken>);

impl KeyWatch {
    /// Waits until the key is refused: it was revoked, or has expired.
    pub async fn refused(&self) {
        self.0.cancelled().await;
    }
}

impl KeyWatches {
    pub(crate) fn new(cache: Arc<KeyCache>) -> Self {
        Self { cache, watched: Mutex::default(), any: Notify::new() }
    }

    /// Watches a key until what is returned is dropped.
    pub(crate) fn watch(&self, hash: KeyHash) -> KeyWatch {
        let mut watched = self.watched.lock();
        let known = watched.get(&hash).and_then(Weak::upgrade);
        // One that was refused is looked at anew: the caller has found it to be good.
        let known = known.filter(|known| !known.is_cancelled());
        let token = known.unwrap_or_else(|| {
            let token = Arc::new(CancellationToken::new());
            watched.insert(hash, Arc::downgrade(&token));
            self.any.notify_one();
            token
        });
        KeyWatch(token)
    }

    /// Runs until shutdown.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        stop.run_until_cancelled(self.keep_looking()).await;
    }

    async fn keep_looking(&self) {
        loop {
            let watched = self.still_watched();
            if watched.is_empty() {
                self.any.notified().await;
                continue;
            }
            for (hash, token) in watched {
                match self.cache.find(hash).await {
                    Ok(Some(_)) => {}
                    Ok(None) => token.cancel(),
                    Err(error) => tracing::debug!(%error, "watched keys wait for the store"),
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn still_watched(&self) -> Vec<(KeyHash, Arc<CancellationToken>)> {
        let mut watched = self.watched.lock();
        watched.retain(|_, token| token.strong_count() > 0);
        let open = watched.iter().filter_map(|(hash, token)| Some((*hash, token.upgrade()?)));
        open.filter(|(_, token)| !token.is_cancelled()).collect()
    }
}
