//! The schedules of the configuration file: each as for `PUT /schedules/{name}`, with its name and tenant.

use std::collections::HashSet;

use duly_core::name::TenantName;
use duly_engine::ConfiguredSchedule;
use serde_json::{Map, Value};

use crate::exit::Usage;

/// Checks the schedules of a file, and reports all that is wrong.
pub(super) fn read(entries: Vec<Map<String, Value>>) -> Result<Vec<ConfiguredSchedule>, Usage> {
    let mut read = Vec::with_capacity(entries.len());
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        match read_one(entry) {
            Ok(schedule) if seen.insert((schedule.tenant.clone(), schedule.name.clone())) => {
                read.push(schedule);
            }
            Ok(schedule) => {
                wrong.push(format!("schedules[{index}]: {} is given twice", schedule.name))
            }
            Err(found) => {
                wrong.extend(found.iter().map(|why| format!("schedules[{index}]: {why}")))
            }
        }
    }
    if wrong.is_empty() { Ok(read) } else { Err(Usage::new(wrong.join("\n"))) }
}

fn read_one(mut entry: Map<String, Value>) -> Result<ConfiguredSchedule, Vec<String>> {
    let tenant = match entry.remove("tenant") {
        Some(Value::String(name)) => {
            TenantName::given(&name).map_err(|why| vec![format!("/tenant {why}")])
        }
        Some(_) => Err(vec!["/tenant must be a string; quote it".to_owned()]),
        None => Err(vec!["/tenant is required, such as `tenant: default`".to_owned()]),
    };
    let body = Value::Object(entry).to_string();
    let schedule = duly_api::read_configured_schedule(body.as_bytes()).map_err(|problem| {
        let fields = problem.errors.iter();
        let found: Vec<_> = fields.map(|it| format!("{} {}", it.pointer, it.detail)).collect();
        if found.is_empty() { vec![problem.detail.clone()] } else { found }
    });
    match (tenant, schedule) {
        (Ok(tenant), Ok((name, schedule))) => Ok(ConfiguredSchedule { tenant, name, schedule }),
        (tenant, schedule) => {
            let found = [tenant.err(), schedule.err()].into_iter().flatten();
            Err(found.flatten().collect())
        }
    }
}
