//! Clients that submit a whole workflow, repeat that until it is answered, and cancel some.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duly_client::wire::{
    Backoff, CancelRequest, NeededOn, NeededTask, SubmitRequest, WorkflowAnswer, WorkflowRequest,
};
use tokio::time::Instant;

use super::dag::{self, Node};
use super::{CANCELLED, Client, judge};
use crate::history::{Call, Member, Verb};

/// Workflows whose first unhandled failure cancels what is open, out of a thousand.
const FAIL_FAST: u32 = 100;
/// How much of the run may pass until all workflows are submitted.
const SHARE: f64 = 0.9;
/// Tasks that a workflow has on average.
const MEAN_TASKS: f64 = 26.0;
/// Tasks of workflows per second that slow single tasks down to half of their pace.
const HALF_PACE: f64 = 60.0;
/// How much slower single tasks become at most.
const SLOWEST: f64 = 3.0;

/// Spreads the workflows of a run over its time.
#[derive(Debug)]
pub(super) struct Quota {
    wanted: u64,
    begun: AtomicU64,
    start: Instant,
    duration: Duration,
}

impl Quota {
    pub(super) fn new(wanted: u64, duration: Duration) -> Self {
        Self { wanted, begun: AtomicU64::new(0), start: Instant::now(), duration }
    }

    /// Takes one, if it is time for it.
    pub(super) fn take(&self) -> bool {
        let passed = self.start.elapsed().as_secs_f64() / (self.duration.as_secs_f64() * SHARE);
        let take = |begun: u64| {
            (begun < self.wanted && (begun as f64) < self.wanted as f64 * passed).then(|| begun + 1)
        };
        self.begun.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    /// How much slower single tasks come, so that the workers keep up with both.
    pub(super) fn slowdown(&self) -> f64 {
        let per_second = self.wanted as f64 * MEAN_TASKS / self.duration.as_secs_f64().max(1.0);
        (1.0 + per_second / HALF_PACE).min(SLOWEST)
    }
}

impl Client {
    /// Submits a random workflow, and may cancel it or one of its tasks; whether it was answered.
    pub(super) async fn workflow(&mut self, key: &str) -> anyhow::Result<bool> {
        let nodes = dag::draw(&mut self.random);
        let body = serde_json::to_string(&self.request(key, &nodes)?)?;
        let call = self.call(Verb::SubmitWorkflow);
        let call = Call { key: Some(key.to_owned()), members: members(key, &nodes), ..call };
        let ask = move |client: duly_client::Client| {
            let body = body.clone();
            async move { client.submit_workflow(body).await }
        };
        let note = |call, answer: &WorkflowAnswer| Call {
            workflow: Some(answer.workflow_id),
            member_ids: answer.tasks.clone(),
            ..call
        };
        let Some(answer) = self.repeat(call, ask, note).await? else { return Ok(false) };
        if self.happens(CANCELLED) {
            self.cancel_workflow(key, &answer).await?;
        } else if self.happens(CANCELLED)
            && let Some(task) = answer.tasks.values().next_back()
        {
            self.cancel(*task).await?;
        }
        Ok(true)
    }

    fn request(&mut self, key: &str, nodes: &[Node]) -> anyhow::Result<WorkflowRequest> {
        let labels = BTreeMap::from([("key".to_owned(), key.to_owned())]);
        let mut tasks = BTreeMap::new();
        for (place, node) in nodes.iter().enumerate() {
            let name = member_key(key, place);
            tasks.insert(name.clone(), self.member(key, &name, node)?);
        }
        let fail_fast = self.happens(FAIL_FAST);
        let idempotency_key = Some(key.to_owned());
        Ok(WorkflowRequest { name: None, labels, fail_fast, idempotency_key, tasks })
    }

    /// Its label is also its key in the workflow.
    fn member(&mut self, key: &str, name: &str, node: &Node) -> anyhow::Result<SubmitRequest> {
        let mut task = self.work(node.ms, node.failures)?;
        let need = |(parent, on): &(usize, _)| {
            NeededTask::On(NeededOn { task: member_key(key, *parent), on: *on })
        };
        task.labels.insert("key".to_owned(), name.to_owned());
        task.depends_on = node.needs.iter().map(need).collect();
        task.delay_seconds = node.delay_seconds;
        task.retries = Some(node.retries);
        // A chain of many tasks that fail at first must end soon after the run all the same.
        let (strategy, base_seconds) = (Some("fixed".to_owned()), Some(0.1));
        task.backoff = Some(Backoff { strategy, base_seconds, ..Backoff::default() });
        Ok(task)
    }

    /// Cancels once; whatever comes of it is written down.
    async fn cancel_workflow(&mut self, key: &str, answer: &WorkflowAnswer) -> anyhow::Result<()> {
        let (key, workflow) = (Some(key.to_owned()), Some(answer.workflow_id));
        let call = Call { key, workflow, ..self.call(Verb::CancelWorkflow) };
        self.shared.journal.write(&call)?;
        let order = CancelRequest { reason: Some("chaos".to_owned()) };
        let client = self.shared.scene.doors.door(self.door).clone();
        let answer = self.patiently(client.cancel_workflow(answer.workflow_id, &order)).await;
        let (phase, http) = judge(answer.as_ref());
        self.shared.journal.write(Call { phase, http, ..call })?;
        Ok(())
    }
}

/// What is written down of the tasks.
fn members(key: &str, nodes: &[Node]) -> BTreeMap<String, Member> {
    let member = |(place, node): (usize, &Node)| {
        let needs = node.needs.iter().map(|(parent, on)| (member_key(key, *parent), *on));
        let member = Member { needs: needs.collect(), delay_seconds: node.delay_seconds };
        (member_key(key, place), member)
    };
    nodes.iter().enumerate().map(member).collect()
}

fn member_key(workflow: &str, place: usize) -> String {
    format!("{workflow}.{place:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_workflows_are_taken_than_are_wanted() {
        let quota = Quota::new(3, Duration::from_nanos(1));
        assert_eq!((0..10).filter(|_| quota.take()).count(), 3);
        assert!(!Quota::new(0, Duration::from_nanos(1)).take());
        let day = Quota::new(3, Duration::from_secs(86_400));
        assert!(day.take() && !day.take());
    }

    #[test]
    fn single_tasks_are_slower_beside_many_workflows() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(Quota::new(0, minutes(5)).slowdown(), 1.0);
        assert!(Quota::new(300, minutes(5)).slowdown() < 1.5);
        assert!(Quota::new(2_000, minutes(5)).slowdown() > 2.5);
    }
}
