//! The API keys that callers have used lately, also those that do not exist. What it says is at most
//! [`FRESH`] old, so that a revocation is known to every node soon; a flood of wrong keys neither fills
//! the memory nor takes more than [`STRANGERS`] reads of the store at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::KeyId;
use duly_core::key::{ApiKey, KeyHash};
use duly_core::ports::store::{self, Store};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an answer of the store is gone by.
pub(crate) const FRESH: Duration = Duration::from_secs(4);
/// Answers that are kept in each of two generations.
const ENTRIES: usize = 5_000;
/// Reads under way at once for keys that were not found before.
const STRANGERS: usize = 2;
/// The same for keys that were: many callers that ask for one key cause few reads.
const FRIENDS: usize = 4;
/// How soon the first use of a key is noted.
const SOON: Duration = Duration::from_secs(1);
/// How often uses are noted at the most.
const PAUSE: Duration = Duration::from_secs(60);

/// What the store said about a hash.
#[derive(Clone)]
struct Entry {
    key: Option<Arc<ApiKey>>,
    /// When the store was asked.
    asked: Instant,
    /// From when on the key is refused, by this process's clock.
    ends: Option<Instant>,
}

impl Entry {
    fn is_fresh(&self) -> bool {
        self.asked.elapsed() < FRESH
    }

    /// The key, if it counts now.
    fn current(&self) -> Option<Arc<ApiKey>> {
        let open = self.ends.is_none_or(|ends| Instant::now() < ends);
        self.key.clone().filter(|_| open)
    }
}

/// Two generations: when the newer is full, the older is forgotten.
#[derive(Default)]
struct Entries {
    new: HashMap<KeyHash, Entry>,
    old: HashMap<KeyHash, Entry>,
}

impl Entries {
    fn get(&self, hash: &KeyHash) -> Option<&Entry> {
        self.new.get(hash).or_else(|| self.old.get(hash))
    }

    fn put(&mut self, hash: KeyHash, entry: Entry) {
        if self.new.len() >= ENTRIES && !self.new.contains_key(&hash) {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(hash, entry);
    }
}

pub(crate) struct KeyCache {
    store: Arc<dyn Store>,
    entries: Mutex<Entries>,
    friends: Semaphore,
    strangers: Semaphore,
    /// Keys that were used since their uses were noted last.
    used: Mutex<HashSet<KeyId>>,
    any_used: Notify,
}

impl KeyCache {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            entries: Mutex::default(),
            friends: Semaphore::new(FRIENDS),
            strangers: Semaphore::new(STRANGERS),
            used: Mutex::default(),
            any_used: Notify::new(),
        }
    }

    /// The key with this hash, if it exists, has not expired and was not revoked.
    pub(crate) async fn find(&self, hash: KeyHash) -> store::Result<Option<Arc<ApiKey>>> {
        let found = self.look(hash).await?.current();
        if let Some(key) = &found
            && self.used.lock().insert(key.id)
        {
            self.any_used.notify_one();
        }
        Ok(found)
    }

    async fn look(&self, hash: KeyHash) -> store::Result<Entry> {
        let known = self.entries.lock().get(&hash).cloned();
        if let Some(fresh) = known.as_ref().filter(|known| known.is_fresh()) {
            return Ok(fresh.clone());
        }
        let is_friend = known.is_some_and(|known| known.key.is_some());
        let places = if is_friend { &self.friends } else { &self.strangers };
        let _place = places.acquire().await.expect("it is never closed");
        // Another caller may have asked meanwhile.
        let known = self.entries.lock().get(&hash).cloned();
        if let Some(fresh) = known.filter(Entry::is_fresh) {
            return Ok(fresh);
        }
        let entry = self.ask(hash).await?;
        self.entries.lock().put(hash, entry.clone());
        Ok(entry)
    }

    async fn ask(&self, hash: KeyHash) -> store::Result<Entry> {
        let asked = Instant::now();
        let found = self.store.find_key(hash).await?;
        let key = found.filter(|key| key.revoked_at.is_none());
        let ends = match key.as_ref().and_then(|key| key.expires_at) {
            None => None,
            Some(end) => {
                let now = self.store.now().await?;
                Some(asked + end.since(now))
            }
        };
        Ok(Entry { key: key.map(Arc::new), asked, ends })
    }

    /// Forgets what was said about a key: on this node its revocation counts at once.
    pub(crate) fn forget(&self, id: KeyId) {
        let mut entries = self.entries.lock();
        let Entries { new, old } = &mut *entries;
        for generation in [new, old] {
            generation.retain(|_, entry| entry.key.as_ref().is_none_or(|key| key.id != id));
        }
    }

    /// The loop that notes uses. It writes nothing while no key is used.
    pub(crate) async fn note_uses(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.any_used.notified() => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(SOON) => self.note().await,
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        self.note().await;
    }

    async fn note(&self) {
        let used: Vec<_> = self.used.lock().drain().collect();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.store.note_key_uses(used).await {
            tracing::debug!(%error, "the uses of keys cannot be noted");
        }
    }
}
