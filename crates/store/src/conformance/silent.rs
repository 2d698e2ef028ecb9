//! A store that never hints: wake-ups make things faster, and nothing may depend on them.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use duly_core::ports::store::{Hint, Result, Store};
use futures_util::future::BoxFuture;

use super::decorate::{Decorated, Layer};
use super::harness::Backend;
use crate::clock::ManualClock;

/// Makes every call, and lets nobody know that there is work.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Layer for Silent {
    fn call<'a, T, F>(&'a self, inner: F) -> impl Future<Output = Result<T>> + Send + 'a
    where
        T: Send + 'a,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        inner()
    }

    fn hint<'a>(&'a self, _inner: &'a dyn Store) -> BoxFuture<'a, Hint> {
        Box::pin(std::future::pending())
    }
}

/// A backend whose hints are all lost.
pub struct WithoutHints<B>(pub B);

#[async_trait]
impl<B: Backend> Backend for WithoutHints<B> {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Decorated::new(Silent, self.0.store()))
    }

    fn clock(&self) -> &ManualClock {
        self.0.clock()
    }

    async fn crash(&mut self) {
        self.0.crash().await;
    }

    fn hints(&self) -> bool {
        false
    }

    fn outlives_nodes(&self) -> bool {
        self.0.outlives_nodes()
    }
}
