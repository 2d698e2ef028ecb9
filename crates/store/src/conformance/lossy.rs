//! A store whose answers get lost, and a caller that repeats its calls. Every case passes as before,
//! since a repeated call is the same as one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use duly_core::ports::store::{Error, Result, Store};

use super::harness::Backend;
use crate::clock::ManualClock;
use crate::layer::{BoxFuture, Call, Layer, Layered};

/// Makes every call, and then loses the answer of every other one, beginning with the first.
#[derive(Debug, Default)]
pub struct LosesAnswers {
    calls: AtomicU64,
}

impl Layer for LosesAnswers {
    async fn call<'a, T, F>(&'a self, call: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        let answer = inner().await;
        // `revoked` answers each lease once. No case depends on it: the holder's outcome is refused.
        let may_be_lost = call.name != "revoked";
        if may_be_lost && self.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return Err(Error::Unavailable { reason: "the answer was lost".to_owned() });
        }
        answer
    }
}

/// Repeats a call with the same arguments while the store is unavailable.
#[derive(Clone, Copy, Debug)]
pub struct Persistent;

/// Concurrent callers share the count of calls, so a caller may lose several answers in a row.
const PATIENCE: u32 = 1000;

impl Layer for Persistent {
    async fn call<'a, T, F>(&'a self, _: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
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

/// A backend whose callers lose the first answer to every call and repeat it.
pub struct LosingAnswers<B>(pub B);

#[async_trait]
impl<B: Backend> Backend for LosingAnswers<B> {
    fn store(&self) -> Arc<dyn Store> {
        let losing = Layered::new(LosesAnswers::default(), self.0.store());
        Arc::new(Layered::new(Persistent, Arc::new(losing)))
    }

    fn clock(&self) -> &ManualClock {
        self.0.clock()
    }

    async fn crash(&mut self) {
        self.0.crash().await;
    }

    fn outlives_nodes(&self) -> bool {
        self.0.outlives_nodes()
    }
}
