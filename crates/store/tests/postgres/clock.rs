//! The clock of the server is set forward and back under a node that runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::back_off::BackOff;
use duly_core::id::TaskId;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    Control as _, Controlled, EditTask, Rules, StoreHealth as _, Submit, Submitted, TaskChange,
    Tasks as _,
};
use duly_core::submit::Start;
use duly_core::task::{Idempotency, NewTask, Priority};
use duly_core::time::Timestamp;
use duly_store::clock::SystemClock;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};
use tokio_postgres::Client;

/// Makes the database's clock one that can be set under the connections of a node. The event trigger
/// tells later tests that this database is not as it was made.
const MAKE_CLOCK: &str = "
    CREATE TABLE public.clock_step (ms bigint NOT NULL);
    INSERT INTO public.clock_step VALUES (0);
    CREATE OR REPLACE FUNCTION duly.now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + s.ms
        FROM public.clock_step s
    $$;
    CREATE FUNCTION public.changed() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
    CREATE EVENT TRIGGER changed ON ddl_command_start WHEN TAG IN ('CREATE CONVERSION')
        EXECUTE FUNCTION public.changed()";
/// Where the clock stands against the right time, in milliseconds.
const STEPS: [i64; 6] = [30_000, 0, -30_000, 30_000, -30_000, 0];
const DELAY: Duration = Duration::from_secs(20);

/// Due times are compared with the time that the server shows right before the call, which is the
/// earliest that it can show in it. The node learns nothing of a step but by these calls.
#[tokio::test]
async fn a_delay_counts_from_the_time_that_the_server_shows() {
    let Some(server) = scratch::server() else { return };
    let scratch = Scratch::new(&server, Arc::new(SystemClock::default())).await;
    let (client, _driver) = scratch.connect().await;
    client.batch_execute(MAKE_CLOCK).await.unwrap();
    let store = PostgresStore::open(&scratch.url(), Rules::default()).await.unwrap();
    for (number, step) in (1_u32..).zip(STEPS) {
        let set = format!("UPDATE public.clock_step SET ms = {step}");
        // What the node believes is right until the clock is set, and wrong after it.
        store.now().await.unwrap();
        client.batch_execute(&set).await.unwrap();
        for (kind, has_key) in [("plain", false), ("with a key", true)] {
            let earliest = now(&client).await.plus(DELAY);
            let id = submit(&store, 2 * number + u32::from(has_key), has_key).await;
            let (due, created) = times(&store, id).await;
            assert!(due >= earliest, "{kind} at {step}: {due:?} is before {earliest:?}");
            assert!(created.plus(DELAY) >= earliest, "{kind} at {step}: created {created:?}");
        }
        let earliest = now(&client).await.plus(2 * DELAY);
        let id = submit(&store, 1_000 + number, false).await;
        let change = TaskChange { start: Some(Start::After(2 * DELAY)), ..TaskChange::default() };
        let edit = EditTask { tenant: TenantName::default_tenant(), task: id, change };
        assert_eq!(store.edit(edit).await.unwrap(), Controlled::Done);
        let (due, _) = times(&store, id).await;
        assert!(due >= earliest, "edited at {step}: {due:?} is before {earliest:?}");
    }
}

async fn now(client: &Client) -> Timestamp {
    let millis = client.query_one("SELECT duly.now()", &[]).await.unwrap().get(0);
    Timestamp::from_millis(millis)
}

/// Submits a task with a delay, as an engine does that goes by this node's idea of the time.
async fn submit(store: &PostgresStore, number: u32, has_key: bool) -> TaskId {
    let run_at = store.now().await.unwrap().plus(DELAY);
    let id = TaskId::mint(run_at, number, 7);
    let key = format!("key-{number}");
    let idempotency = has_key.then_some(Idempotency { key, body: [7; 32] });
    let task = NewTask {
        id,
        lane: Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new("email").unwrap(),
        },
        priority: Priority::new(5).unwrap(),
        run_at,
        delay: Some(DELAY),
        retries: 3,
        back_off: BackOff::default(),
        timeout: None,
        labels: BTreeMap::new(),
        payload: Arc::from("{}"),
        idempotency,
        links: None,
    };
    let answers = store.submit(Submit { tasks: vec![task], offer: None }).await.unwrap();
    assert!(matches!(answers[..], [Submitted::Stored { .. }]), "{answers:?}");
    id
}

/// When a task is due, and when it was stored.
async fn times(store: &PostgresStore, id: TaskId) -> (Timestamp, Timestamp) {
    let task = store.get(&TenantName::default_tenant(), id).await.unwrap().unwrap();
    (task.run_at, task.created_at)
}
