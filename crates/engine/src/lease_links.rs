//! What leases get before a worker sees them: the results of the parents, and the rendered payload.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::ports::store::{self, Parent, Store};
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::template;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::claim_slot::{ClaimSlot, WaitingClaim};

/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_millis(500);

/// Leases that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// A worker can get these.
    pub(crate) ready: Vec<Lease>,
    /// The payload of these cannot be rendered: their tasks fail.
    pub(crate) failed: Vec<(Lease, Failure)>,
}

/// Whether a lease lacks something before a worker gets it.
pub(crate) fn needs_preparation(lease: &Lease) -> bool {
    lease.has_parents || lease.renders
}

/// Completes leases. `known` are the parents, if the store has read them along. While the store is away this waits, since the leases are granted; it ends early,
/// with nothing, at shutdown.
pub(crate) async fn prepare(
    store: &dyn Store,
    leases: Vec<Lease>,
    mut known: Option<Vec<Vec<Parent>>>,
    shutdown: &CancellationToken,
) -> Result<Prepared, Vec<Lease>> {
    if !leases.iter().any(needs_preparation) {
        return Ok(Prepared { ready: leases, failed: Vec::new() });
    }
    loop {
        match read(store, &leases, known.take()).await {
            Ok(read) => return Ok(complete(leases, read)),
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "leases wait for the results of their parents");
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the parents of tasks cannot be read"
                );
                return Ok(one_by_one(store, leases).await);
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return Err(leases),
            () = tokio::time::sleep(BACK_OFF) => {}
        }
    }
}

/// What a lease needs from the store.
#[derive(Debug, Default)]
struct Read {
    parents: Vec<Parent>,
    /// Parents that the payload may name and whose result is too large to come along.
    cut: Vec<TaskId>,
}

/// One for each lease.
async fn read(
    store: &dyn Store,
    leases: &[Lease],
    known: Option<Vec<Vec<Parent>>>,
) -> store::Result<Vec<Read>> {
    let children: Vec<_> = leases.iter().filter(|it| it.has_parents).map(|it| it.task).collect();
    let mut parents = match known {
        Some(known) => known,
        None if children.is_empty() => Vec::new(),
        None => store.parents(children).await?,
    }
    .into_iter();
    let mut all = Vec::with_capacity(leases.len());
    for lease in leases {
        let mut read = Read::default();
        if lease.has_parents {
            read.parents = parents.next().unwrap_or_default();
        }
        if is_template(lease) {
            read.cut = cut(store, lease, &read.parents).await?;
        }
        all.push(read);
    }
    Ok(all)
}

/// Whether the payload is to be rendered and has an expression.
fn is_template(lease: &Lease) -> bool {
    lease.renders && template::may_hold_expressions(&lease.payload)
}

/// A result that was too large to come along must not render as null.
async fn cut(store: &dyn Store, lease: &Lease, parents: &[Parent]) -> store::Result<Vec<TaskId>> {
    let mut cut = Vec::new();
    for parent in parents {
        let is_used = lease.payload.contains(&*name(parent));
        if is_used && parent.status == Status::Success && parent.result.is_none() {
            let task = store.get(&lease.lane.tenant, parent.task).await?;
            cut.extend(task.filter(|task| task.result.is_some()).map(|task| task.id));
        }
    }
    Ok(cut)
}

fn complete(leases: Vec<Lease>, read: Vec<Read>) -> Prepared {
    let mut prepared = Prepared { ready: Vec::with_capacity(leases.len()), failed: Vec::new() };
    // Siblings mostly have the same parents, whose results may be large.
    let mut last: (Vec<Parent>, Option<Arc<str>>) = (Vec::new(), None);
    for (mut lease, Read { parents, cut }) in leases.into_iter().zip(read) {
        if parents != last.0 {
            let text = (!parents.is_empty()).then(|| object(&parents, |_| false).into());
            last = (parents.clone(), text);
        }
        lease.parents = last.1.clone();
        if is_template(&lease) {
            let scope = object(&parents, |parent| cut.contains(&parent.task));
            match template::render(&lease.payload, &scope) {
                Ok(payload) => lease.payload = payload,
                Err(failure) => {
                    prepared.failed.push((lease, failure));
                    continue;
                }
            }
        }
        prepared.ready.push(lease);
    }
    prepared
}

/// One damaged row must not keep others from their workers.
async fn one_by_one(store: &dyn Store, leases: Vec<Lease>) -> Prepared {
    let mut prepared = Prepared::default();
    for lease in leases {
        match read(store, std::slice::from_ref(&lease), None).await {
            Ok(read) => {
                let one = complete(vec![lease], read);
                prepared.ready.extend(one.ready);
                prepared.failed.extend(one.failed);
            }
            Err(error) => {
                let failure = Failure::new("STORE_FAILED", error.to_string());
                prepared.failed.push((lease, failure));
            }
        }
    }
    prepared
}

/// The name under which a child finds a parent.
fn name(parent: &Parent) -> String {
    parent.key.clone().unwrap_or_else(|| parent.task.to_string())
}

/// The parents by name, as JSON. Results are copied as they are spelled; those that are cut are left
/// out.
fn object(parents: &[Parent], is_cut: impl Fn(&Parent) -> bool) -> String {
    let quote = |text: &str| serde_json::to_string(text).expect("a string is JSON");
    let mut text = String::from("{");
    for (index, parent) in parents.iter().enumerate() {
        let separator = if index > 0 { "," } else { "" };
        let (name, id, status) = (quote(&name(parent)), parent.task, parent.status);
        text += &format!(r#"{separator}{name}:{{"taskId":"{id}","status":"{status}""#);
        if !is_cut(parent) {
            text += r#","result":"#;
            text += parent.result.as_deref().filter(|it| is_json(it)).unwrap_or("null");
        }
        text += r#","error":"#;
        match &parent.error {
            Some(error) => {
                text += &serde_json::to_string(error).expect("an error is JSON");
            }
            None => text += "null",
        }
        text.push('}');
    }
    text.push('}');
    text
}

/// Stored text may be damaged, and must not break the rest.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Gives a worker what is left of its leases. Returns the outcomes of the others, which the caller
/// commits.
pub(crate) fn deliver(slot: &ClaimSlot, waiting: WaitingClaim, prepared: Prepared) -> Vec<Finish> {
    let Prepared { ready, failed } = prepared;
    let fail = |(lease, error): &(Lease, Failure)| {
        Finish::new(lease.task, lease.epoch, Outcome::Fail { error: error.clone() })
    };
    let mut finishes: Vec<_> = failed.iter().map(fail).collect();
    if ready.is_empty() && !failed.is_empty() {
        let failed = failed.into_iter().map(|(lease, _)| lease).collect();
        slot.serve_without(waiting, failed);
    } else {
        finishes.extend(slot.serve(waiting, ready).iter().map(Lease::release));
    }
    finishes
}

#[cfg(test)]
mod tests {
    use duly_core::ports::store::Parent;
    use duly_core::time::Timestamp;
    use duly_core::workflow::{Condition, EdgeState};

    use super::*;

    #[test]
    fn results_of_parents_are_copied_as_they_are_spelled() {
        let parent = |key: Option<&str>, result: &str| Parent {
            task: TaskId::mint(Timestamp::EPOCH, 0, 0),
            key: key.map(str::to_owned),
            on: Condition::Success,
            edge: EdgeState::Satisfied,
            status: Status::Success,
            result: Some(result.into()),
            error: None,
        };
        let id = parent(None, "").task;
        let big = r#"{"n": 12345678901234567890123456789, "f":1.0e2}"#;
        let text = object(&[parent(Some("a\"b"), big), parent(None, "{oops")], |_| false);
        let wanted = format!(
            r#"{{"a\"b":{{"taskId":"{id}","status":"SUCCESS","result":{big},"error":null}},"{id}":{{"taskId":"{id}","status":"SUCCESS","result":null,"error":null}}}}"#
        );
        assert_eq!(text, wanted);
        assert!(!object(&[parent(Some("a"), "1")], |_| true).contains("result"));
    }
}
