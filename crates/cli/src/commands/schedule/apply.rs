//! `duly schedule apply`: the schedules of a file. All are checked before the first is changed.

use std::collections::HashSet;

use anyhow::Context as _;
use duly_client::wire::{ProblemField, SchedulePage};
use duly_client::{Client, Error, Precondition};
use serde::Deserialize;
use serde_json::Value;

use super::{connect, show};
use crate::args::{Output, ScheduleApplyArgs};
use crate::commands::document::{Document, Item};
use crate::exit::Ending;
use crate::output;

/// The only field of a definition that is read here.
#[derive(Deserialize)]
struct Named {
    name: Option<Value>,
}

pub(super) async fn run(args: &ScheduleApplyArgs) -> anyhow::Result<Ending> {
    let Some(document) = Document::read(&args.file)? else { return Ok(Ending::Unsuccessful) };
    let client = connect(&args.client)?;
    let items = document.items();
    let mut names = Vec::with_capacity(items.len());
    let mut seen = HashSet::new();
    let mut holds = true;
    for item in &items {
        let mut errors = Vec::new();
        match name_of(item, &mut seen) {
            Ok(name) => names.push(name),
            Err(error) => errors.push(error),
        }
        for error in check(&client, item).await? {
            if !errors.iter().any(|known| known.pointer == error.pointer) {
                errors.push(error);
            }
        }
        document.report_item(item, &errors);
        holds &= errors.is_empty();
    }
    if !holds {
        output::say("nothing was changed");
        return Ok(Ending::Unsuccessful);
    }
    let mut applied = Vec::with_capacity(items.len());
    for (name, item) in names.iter().zip(items) {
        let put = client.put_schedule(name, item.body, Precondition::None).await;
        applied.push(put.with_context(|| format!("cannot apply {name}"))?);
    }
    match args.client.output {
        Output::Json => output::json(&SchedulePage { items: applied, next_cursor: None })?,
        Output::Table => output::data(&show::table(&applied))?,
        Output::Id => {
            for schedule in &applied {
                output::data(&schedule.name)?;
            }
        }
    }
    if let Some(first) = names.first() {
        output::say(&format!("next: duly schedule next {first}"));
    }
    Ok(Ending::Ok)
}

/// The name of a definition: a file has each once.
fn name_of(item: &Item, seen: &mut HashSet<String>) -> Result<String, ProblemField> {
    let error = |code: &str, detail: &str| ProblemField {
        pointer: "/name".to_owned(),
        code: code.to_owned(),
        detail: detail.to_owned(),
    };
    let named = serde_json::from_str::<Named>(&item.body).ok();
    match named.and_then(|named| named.name) {
        Some(Value::String(name)) if seen.insert(name.clone()) => Ok(name),
        Some(Value::String(_)) => Err(error("DUPLICATE_FIELD", "is given twice")),
        Some(_) => Err(error("WRONG_TYPE", "must be a string; quote it")),
        None => Err(error("REQUIRED", "is required")),
    }
}

/// What the server finds wrong with a definition.
async fn check(client: &Client, item: &Item) -> Result<Vec<ProblemField>, Error> {
    match client.preview_schedule(item.body.clone()).await {
        Ok(_) => Ok(Vec::new()),
        Err(Error::Problem { problem, .. }) if !problem.errors.is_empty() => Ok(problem.errors),
        Err(error) => Err(error),
    }
}
