//! Events on their way out of the store: to the sinks that this node serves, and to those who follow a
//! tenant's events.

mod feed;
mod keeper;
mod relay;
mod sinks;
mod tail;
mod written;

pub use self::feed::{Begin, EventFeed, Fed};
pub(crate) use self::keeper::Keeper;
pub(crate) use self::relay::Relay;
pub(crate) use self::sinks::Sinks;
pub(crate) use self::tail::Tails;
pub(crate) use self::written::{Written, pass_event_hints};

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::STORE_BATCH;
use duly_core::ports::event_sink::{Delivery, Details};
use duly_core::ports::store::{self, Store, StoredEvent};
use duly_core::task::Task;

/// Adds what is asked for about the tasks of these events, with one read for many events.
async fn with_details(
    store: &dyn Store,
    events: Vec<StoredEvent>,
    details: Details,
) -> store::Result<Vec<Delivery>> {
    let mut tasks = HashMap::new();
    if details != Details::Ids {
        let mut ids: Vec<_> = events.iter().filter_map(|it| it.event.task()).collect();
        ids.sort_unstable();
        ids.dedup();
        for page in ids.chunks(STORE_BATCH) {
            let found = store.tasks_of(page.to_vec(), details == Details::Payloads).await?;
            tasks.extend(found.into_iter().map(|task| (task.id, Arc::new(task))));
        }
    }
    let deliver = |it: StoredEvent| delivery(it, &tasks);
    Ok(events.into_iter().map(deliver).collect())
}

fn delivery(stored: StoredEvent, tasks: &HashMap<TaskId, Arc<Task>>) -> Delivery {
    let StoredEvent { position, event } = stored;
    let task = event.task().and_then(|id| tasks.get(&id).cloned());
    Delivery { position, event, task }
}
