//! Events on the wire.

use std::sync::Arc;

use duly_core::event::{Event, Place, Position};
use duly_core::id::{NodeId, WorkflowId};
use duly_core::name::{Lane, QueueName, ScheduleName, TenantName, TypeName};
use duly_core::schedule::{SkipReason, SlotRun};
use duly_core::workflow::WorkflowStatus;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

const AT: Timestamp = Timestamp::EPOCH;

fn cloud_event(event: Event, task: Option<Task>) -> Value {
    let position = Position { view: "".into(), at: AT, number: 7, index: 2 };
    let delivery = Delivery { position, event, task: task.map(Arc::new) };
    serde_json::to_value(CloudEvent::of(&delivery)).unwrap()
}

fn lane() -> Lane {
    Lane {
        tenant: TenantName::new("acme").unwrap(),
        queue: QueueName::new("mail").unwrap(),
        task_type: TypeName::new("email").unwrap(),
    }
}

#[test]
fn a_task_that_is_gone_leaves_its_place() {
    let id = TaskId::mint(AT, 1, 2);
    let event = Event::of_task(EventKind::TaskDeleted, &lane(), (id, 3, 4), AT);
    let expected = json!({
        "specversion": "1.0", "id": "0-7-2", "source": "/tenants/acme",
        "type": "dev.duly.task.deleted.v1", "subject": id, "time": "1970-01-01T00:00:00.000Z",
        "datacontenttype": "application/json", "run": 3, "epoch": 4,
        "data": {"taskId": id, "type": "email", "queue": "mail"},
    });
    assert_eq!(cloud_event(event, None), expected);
}

/// The names of attributes have lower-case letters and digits only, and the required ones are there.
#[test]
fn an_event_keeps_the_rules_of_cloud_events() {
    let id = TaskId::mint(AT, 1, 2);
    let events = [
        Event::of_task(EventKind::TaskFailed, &lane(), (id, 1, 1), AT),
        Event::settings_changed(2, AT),
    ];
    for event in events {
        let written = cloud_event(event, None);
        let fields = written.as_object().unwrap();
        let is_plain = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            name.len() <= 20 && name.bytes().all(fits)
        };
        assert!(fields.keys().all(|name| is_plain(name)), "{written}");
        for required in ["specversion", "id", "source", "type"] {
            assert!(fields[required].as_str().is_some_and(|text| !text.is_empty()), "{required}");
        }
        let read: CloudEvent = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert!(read.kind().is_some());
    }
}

#[test]
fn what_concerns_the_installation_comes_from_its_root() {
    let written = cloud_event(Event::settings_changed(2, AT), None);
    assert_eq!((&written["source"], &written["subject"]), (&json!("/"), &json!("settings")));
    assert!(written.get("run").is_none(), "{written}");
}

/// Reads the data of an event as its type, and back: nothing of it is lost, and nothing is added.
fn assert_data_is<T: DeserializeOwned + Serialize>(event: Event) {
    let data = cloud_event(event, None)["data"].take();
    let read: T = serde_json::from_value(data.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), data);
}

#[test]
fn the_data_of_events_is_of_their_types() {
    let Lane { tenant, queue, .. } = lane();
    let (task, workflow) = (TaskId::mint(AT, 1, 2), WorkflowId::mint(AT, 3, 4));
    let name = ScheduleName::new("nightly").unwrap();
    assert_data_is::<WorkflowStartedData>(Event::workflow_started(&tenant, workflow, "etl", AT));
    let status = WorkflowStatus::Failed;
    assert_data_is::<WorkflowEndedData>(Event::workflow_ended(&tenant, workflow, status, AT));
    for run in [SlotRun::Task(task), SlotRun::Workflow(workflow)] {
        assert_data_is::<ScheduleFiredData>(Event::schedule_fired(&tenant, &name, (AT, run), AT));
    }
    let skip = Event::schedule_skipped(&tenant, &name, (AT, SkipReason::Overlap), AT);
    assert_data_is::<ScheduleSkippedData>(skip);
    assert_data_is::<SettingsChangedData>(Event::settings_changed(2, AT));
    assert_data_is::<QueuePausedData>(Event::queue_paused(&tenant, &queue, "full", AT));
    assert_data_is::<QueueResumedData>(Event::queue_resumed(&tenant, &queue, AT));
    let node = NodeId::from_bytes([1; 16]);
    assert_data_is::<NodeData>(Event::node_joined(node, "one", AT));
    assert_data_is::<NodeData>(Event::node_left(node, "one", AT));
    assert_data_is::<LeaderChangedData>(Event::leader_changed(node, 7, AT));
}

#[test]
fn damaged_data_shows_as_a_string() {
    let about = About::Other { subject: "x".to_owned(), data: "{oops".into() };
    let event = Event { kind: EventKind::LeaderChanged, at: AT, place: Place::default(), about };
    assert_eq!(cloud_event(event, None)["data"], json!("{oops"));
}
