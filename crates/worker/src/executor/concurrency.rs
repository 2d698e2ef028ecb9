//! How many handlers a worker may run, changed while it runs.

use duly_core::limits::CONCURRENCY;
use tokio::sync::watch;

/// The number of handlers that run at once in one worker. Clones change the same number.
#[derive(Clone, Debug)]
pub struct Concurrency(watch::Sender<usize>);

/// The worker's end: what it has not gone by yet.
#[derive(Debug)]
pub(super) struct Changes(watch::Receiver<usize>);

pub(super) fn channel(places: usize) -> (Concurrency, Changes) {
    check(places);
    let (sender, receiver) = watch::channel(places);
    (Concurrency(sender), Changes(receiver))
}

fn check(places: usize) {
    assert!((1..=CONCURRENCY).contains(&places), "bad concurrency: {places}");
}

impl Concurrency {
    /// Changes the number. More handlers start at once; when there are to be fewer, those that
    /// run may end, and none starts in their place.
    ///
    /// # Panics
    /// When it exceeds the limit, or nothing may run at all.
    pub fn set(&self, places: usize) {
        check(places);
        self.0.send_if_modified(|known| std::mem::replace(known, places) != places);
    }
}

impl Changes {
    /// Waits for the next number, for ever if nobody can change it. Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> usize {
        match self.0.changed().await {
            Ok(()) => *self.0.borrow_and_update(),
            Err(_) => std::future::pending().await,
        }
    }
}
