//! Databases that cannot be used.

use duly_core::ports::store::{Rules, StoreHealth as _};
use duly_core::time::Timestamp;
use duly_store::postgres::{OpenError, PostgresStore, scratch};

use crate::world::World;

#[tokio::test]
async fn a_database_that_cannot_be_used_is_named() {
    let Some(server) = scratch::server() else { return };
    let open = |url: String| async move {
        PostgresStore::open(&url, Rules::default()).await.err().expect("it cannot be opened")
    };
    let absent = open(format!("{}_absent", server.split('?').next().unwrap())).await;
    assert!(matches!(absent, OpenError::NoDatabase { .. }), "{absent}");
    let unreachable = open("postgres://duly:secret@127.0.0.1:1/duly".to_owned()).await;
    assert!(matches!(unreachable, OpenError::Unreachable { .. }), "{unreachable}");
    assert!(!unreachable.to_string().contains("secret"), "{unreachable}");
    let nonsense = open("postgres://duly@:x/".to_owned()).await;
    assert!(matches!(nonsense, OpenError::Address(_)), "{nonsense}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused() {
    let Some(world) = World::new().await else { return };
    let (client, _driver) = world.scratch.connect().await;
    client.batch_execute("INSERT INTO duly.migration (version) VALUES (999)").await.unwrap();
    let refused = PostgresStore::open(&world.scratch.url(), Rules::default()).await.err();
    assert!(matches!(refused, Some(OpenError::Newer(_))), "{refused:?}");
    assert_eq!(world.nodes[0].now().await.unwrap(), Timestamp::from_millis(1_900_000_000_000));
}
