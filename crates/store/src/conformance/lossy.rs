//! A store whose answers get lost, and a caller who asks again: under both, every case holds as
//! before, since repeating a call is the same as making it once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use duly_core::ports::store::{Error, Result, Store};
use futures_util::future::BoxFuture;

use super::decorate::{Decorated, Layer};
use super::harness::Backend;
use crate::clock::ManualClock;

/// Carries every call out, and then loses the answer of every other one, the first to begin with.
#[derive(Debug, Default)]
pub struct LosesAnswers {
    calls: AtomicU64,
}

impl Layer for LosesAnswers {
    async fn call<'a, T, F>(&'a self, inner: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        let answer = inner().await;
        if self.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return Err(Error::Unavailable { reason: "the answer was lost".to_owned() });
        }
        answer
    }
}

/// Repeats a call with the same arguments while the store is unavailable.
#[derive(Clone, Copy, Debug)]
pub struct Persistent;

/// Callers at the same time take each other's good turns, so one lost answer need not be the last.
const PATIENCE: u32 = 1000;

impl Layer for Persistent {
    async fn call<'a, T, F>(&'a self, inner: F) -> Result<T>
    where
        T: Send + 'a,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        for _ in 0..PATIENCE {
            match inner().await {
                Err(error) if error.is_retryable() => {}
                answer => return answer,
            }
        }
        inner().await
    }
}

/// A backend whose callers lose the first answer to every call and ask again.
pub struct LosingAnswers<B>(pub B);

#[async_trait]
impl<B: Backend> Backend for LosingAnswers<B> {
    fn store(&self) -> Arc<dyn Store> {
        let losing = Decorated::new(LosesAnswers::default(), self.0.store());
        Arc::new(Decorated::new(Persistent, Arc::new(losing)))
    }

    fn clock(&self) -> &ManualClock {
        self.0.clock()
    }

    async fn crash(&mut self) {
        self.0.crash().await;
    }

    fn hints(&self) -> bool {
        self.0.hints()
    }

    fn outlives_nodes(&self) -> bool {
        self.0.outlives_nodes()
    }
}
