//! Commits outcomes: repeated until they are answered, each under the session in which its lease
//! was received.

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::task::Failure;

use super::connection::{Connection, is_temporary, session_is_gone};
use super::retry_policy::RetryPolicy;
use crate::error::Error;
use crate::wire::{FinishAnswer, FinishRequest, OutcomeView};

impl Connection {
    /// One answer per item, in order.
    pub(super) async fn finish(&self, batch: &[Finish]) -> Vec<Finished> {
        let mut answers = vec![Finished::Unknown; batch.len()];
        let leases = batch.iter().map(|finish| (finish.task, finish.epoch));
        for (session, positions) in self.by_session(leases) {
            let outcomes = positions.iter().map(|&position| (&batch[position]).into()).collect();
            let answered = self.commit(session, outcomes).await;
            for (position, answer) in positions.into_iter().zip(answered) {
                answers[position] = answer;
            }
        }
        self.held.lock().remove(batch);
        answers
    }

    /// The positions of the items by session; nearly always all belong to one.
    pub(super) fn by_session(
        &self,
        leases: impl Iterator<Item = (TaskId, u32)>,
    ) -> Vec<(SessionId, Vec<usize>)> {
        let held = self.held.lock();
        let current = self.session.borrow().id;
        let mut groups: Vec<(SessionId, Vec<usize>)> = Vec::new();
        for (position, lease) in leases.enumerate() {
            let session = held.session_of(lease).unwrap_or(current);
            match groups.iter_mut().find(|(of, _)| *of == session) {
                Some((_, positions)) => positions.push(position),
                None => groups.push((session, vec![position])),
            }
        }
        groups
    }

    /// Commits the outcomes of one session. A batch that is refused as a whole is halved until the
    /// invalid item is alone, so that it holds up no other item.
    async fn commit(&self, session: SessionId, outcomes: Vec<OutcomeView>) -> Vec<Finished> {
        let mut answers = Vec::with_capacity(outcomes.len());
        // A stack with the first items on top, which keeps the answers in order.
        let mut parts = vec![outcomes];
        while let Some(outcomes) = parts.pop() {
            let count = outcomes.len();
            let mut request = FinishRequest { session_id: session, outcomes };
            match self.send(&request).await {
                Ok(answer) => {
                    answers.extend(answer.items.iter().map(|item| Finished::from(item.status)));
                }
                Err(error) if session_is_gone(&error) => {
                    answers.extend(std::iter::repeat_n(Finished::LeaseLost, count));
                }
                Err(_) if count > 1 => {
                    parts.push(request.outcomes.split_off(count / 2));
                    parts.push(request.outcomes);
                }
                Err(error) => {
                    answers.push(Finished::Unknown);
                    self.give_up(request, &error).await;
                }
            }
        }
        answers
    }

    /// Sends until it is answered or refused.
    async fn send(&self, request: &FinishRequest) -> Result<FinishAnswer, Error> {
        let mut retry_policy = RetryPolicy::new("commit outcomes");
        loop {
            let error = match self.client.finish(request).await {
                Ok(answer) if answer.items.len() == request.outcomes.len() => {
                    retry_policy.reset();
                    return Ok(answer);
                }
                Ok(_) => self.client.not_an_answer(),
                Err(error) if is_temporary(&error) => error,
                Err(error) => return Err(error),
            };
            tokio::time::sleep(retry_policy.delay_after(&error, &*self.random)).await;
        }
    }

    /// Replaces an outcome that can never be committed by a failed attempt. A release would charge
    /// no attempt, so the task could run into the same refusal for ever.
    async fn give_up(&self, mut request: FinishRequest, why: &Error) {
        for outcome in &mut request.outcomes {
            let task = outcome.task_id;
            tracing::error!(task.id = %task, error = %why, "the server refused an outcome");
            let error = Failure::new("OUTCOME_REFUSED", why.to_string());
            let retry = Outcome::Retry { error, entropy: 0, after: None };
            *outcome = (&Finish::new(task, outcome.epoch, retry)).into();
        }
        // If this is refused too, the lease is taken back at its deadline.
        let _ = self.send(&request).await;
    }
}
