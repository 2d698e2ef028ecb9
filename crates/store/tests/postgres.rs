//! What only PostgreSQL does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::sync::Arc;

use duly_core::ports::clock::Clock;
use duly_core::ports::store::{Pulse as _, Rules};
use duly_store::conformance::Harness;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::Scratch;

#[expect(clippy::disallowed_methods, reason = "where the tests' server is")]
fn server() -> Option<String> {
    std::env::var("DULY_TEST_POSTGRES").ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smoke() {
    let Some(server) = server() else { return };
    for _ in 0..5 {
        let clock: Arc<dyn Clock> = Arc::new(Harness::clock());
        let t = std::time::Instant::now();
        let scratch = Scratch::new(&server, clock.clone()).await;
        eprintln!("create {:?}", t.elapsed());
        let store = PostgresStore::open_at(&scratch.url(), Rules::default(), clock.clone()).await;
        let store = store.unwrap();
        eprintln!("open {:?}", t.elapsed());
        assert_eq!(store.now().await.unwrap(), clock.now());
        store.check().await.unwrap();
        drop(store);
        scratch.drop().await;
        eprintln!("drop {:?}", t.elapsed());
    }
}
