//! Adds one task for each item of a list: the smallest handler that makes a workflow grow.

use async_trait::async_trait;
use duly_core::limits::THEN_TASKS;
use duly_core::submit::Draft;
use duly_core::workflow::Condition;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::reference::{Example, Outcome, PayloadField, Reference, ResultField};
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::then::Tasks;

pub(super) const REFERENCE: Reference = Reference {
    r#type: "map",
    summary: "Adds one task for each item of a list, and perhaps one that runs after all of them.",
    flag: None,
    notes: &[
        "The tasks are stored in the commit of its success. In a workflow their keys are its own \
         key, a dot, and `item-0`, `item-1` and so on, or `collect`.",
    ],
    payload: &[
        PayloadField {
            name: "items",
            r#type: "array, at most 999 items",
            default: None,
            meaning: "The payloads of the tasks.",
        },
        PayloadField {
            name: "type",
            r#type: "string",
            default: None,
            meaning: "The type of the tasks.",
        },
        PayloadField {
            name: "collect",
            r#type: "object",
            default: Some("none"),
            meaning: "A task that runs after all of them have succeeded: `type` and `payload`.",
        },
    ],
    result: &[ResultField {
        name: "tasks",
        r#type: "number",
        meaning: "How many tasks were added for items.",
    }],
    errors: &[],
    examples: &[
        Example {
            title: "Two items",
            payload: r#"{"items": [{"n": 1}, {"n": 2}], "type": "echo"}"#,
            outcome: Outcome::Result(r#"{"tasks": 2}"#),
        },
        Example {
            title: "A list is needed",
            payload: r#"{"items": 3, "type": "echo"}"#,
            outcome: Outcome::Error("INVALID_PAYLOAD"),
        },
    ],
};

/// The type `map`; its payload is `{"items": [1, 2], "type": "echo"}`.
#[derive(Clone, Copy, Debug)]
pub struct Map;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    items: Vec<Box<RawValue>>,
    r#type: String,
    #[serde(default)]
    collect: Option<Collect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Collect {
    r#type: String,
    #[serde(default)]
    payload: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Mapped {
    tasks: usize,
}

#[async_trait]
impl Handler for Map {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let payload: Payload = context.payload()?;
        if payload.items.len() >= THEN_TASKS {
            let rule = format!("items may have {} items", THEN_TASKS - 1);
            return Err(HandlerError::invalid_payload(rule));
        }
        let (mut tasks, mut keys) = (Tasks::new(), Vec::new());
        for (index, item) in payload.items.iter().enumerate() {
            let key = format!("item-{index}");
            tasks = tasks.task(key.clone(), draft(&payload.r#type, Some(item)))?;
            keys.push((key, Condition::Success));
        }
        if let Some(Collect { r#type, payload }) = &payload.collect {
            tasks = tasks.task_after("collect", draft(r#type, payload.as_deref()), keys)?;
        }
        let mapped = Output::json(&Mapped { tasks: payload.items.len() })?;
        Ok(mapped.then(tasks.build()?))
    }
}

fn draft(task_type: &str, payload: Option<&RawValue>) -> Draft {
    Draft {
        task_type: Some(task_type.to_owned()),
        payload: payload.map(|payload| payload.get().to_owned()),
        ..Draft::default()
    }
}
