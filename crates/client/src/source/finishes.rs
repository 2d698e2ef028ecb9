//! Committing outcomes: repeated until they are answered, each under the session in which its
//! lease was received.

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::task::Failure;

use super::link::{Link, may_pass, session_is_gone};
use super::patience::Patience;
use crate::error::Error;
use crate::wire::{FinishAnswer, FinishRequest, OutcomeView};

impl Link {
    /// One answer per item, in order.
    pub(super) async fn finish(&self, batch: &[Finish]) -> Vec<Finished> {
        let mut answers = vec![Finished::Unknown; batch.len()];
        let leases = batch.iter().map(|finish| (finish.task, finish.epoch));
        for (session, places) in self.by_session(leases) {
            let outcomes = places.iter().map(|&place| (&batch[place]).into()).collect();
            let answered = self.commit(session, outcomes).await;
            for (place, answer) in places.into_iter().zip(answered) {
                answers[place] = answer;
            }
        }
        self.held.lock().remove(batch);
        answers
    }

    /// Which items belong to which session: nearly always all of them to one.
    pub(super) fn by_session(
        &self,
        leases: impl Iterator<Item = (TaskId, u32)>,
    ) -> Vec<(SessionId, Vec<usize>)> {
        let held = self.held.lock();
        let current = self.session.borrow().id;
        let mut groups: Vec<(SessionId, Vec<usize>)> = Vec::new();
        for (place, lease) in leases.enumerate() {
            let session = held.session_of(lease).unwrap_or(current);
            match groups.iter_mut().find(|(of, _)| *of == session) {
                Some((_, places)) => places.push(place),
                None => groups.push((session, vec![place])),
            }
        }
        groups
    }

    /// Commits the outcomes of one session. A batch that is refused as a whole is halved until
    /// the item to blame is alone: the others must not wait for it.
    async fn commit(&self, session: SessionId, outcomes: Vec<OutcomeView>) -> Vec<Finished> {
        let mut answers = Vec::with_capacity(outcomes.len());
        // A stack with the first items on top, so that answers come in order.
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
        let mut patience = Patience::new("commit outcomes");
        loop {
            let error = match self.client.finish(request).await {
                Ok(answer) if answer.items.len() == request.outcomes.len() => {
                    patience.rest();
                    return Ok(answer);
                }
                Ok(_) => self.client.not_an_answer(),
                Err(error) if may_pass(&error) => error,
                Err(error) => return Err(error),
            };
            tokio::time::sleep(patience.after(&error, &*self.random)).await;
        }
    }

    /// One outcome can never be committed. The attempt counts as failed: handed back uncharged, the
    /// task could come to the same end for ever.
    async fn give_up(&self, mut request: FinishRequest, why: &Error) {
        for outcome in &mut request.outcomes {
            let task = outcome.task_id;
            tracing::error!(task.id = %task, error = %why, "an outcome was refused and is given up");
            let error = Failure::new("OUTCOME_REFUSED", why.to_string());
            let retry = Outcome::Retry { error, entropy: 0, after: None };
            *outcome = (&Finish::new(task, outcome.epoch, retry)).into();
        }
        // Refused again, it is overdue at its deadline.
        let _ = self.send(&request).await;
    }
}
