//! Tasks that an outcome adds: they get ids that a repeated outcome gets again, so that no crash
//! stores them twice.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::json;
use duly_core::lease::{Finish, Outcome};
use duly_core::limits::KEY_CHARS;
use duly_core::ports::random::Random;
use duly_core::ports::store::{self, Store};
use duly_core::settings::Settings;
use duly_core::submit::Start;
use duly_core::task::{NewTask, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::request::{Added, Member};
use duly_core::workflow::{Condition, Dependency, Links, Membership};
use sha2::{Digest, Sha256};

use super::submit::{Minted, just_after, new_task};
use crate::settings::CurrentSettings;
use crate::tenants::Tenants;

/// Turns what outcomes add into tasks.
pub(crate) struct Adder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) settings: Arc<CurrentSettings>,
    pub(crate) tenants: Arc<Tenants>,
}

impl Adder {
    /// Fills in the tasks that these outcomes add. Most outcomes add none, and cost nothing here.
    pub(crate) async fn fill(&self, batch: &mut [Finish]) -> store::Result<()> {
        for finish in batch.iter_mut().filter(|finish| finish.added.is_some()) {
            let added = finish.added.clone().expect("filtered by it");
            if !matches!(finish.outcome, Outcome::Success { .. }) {
                continue;
            }
            let task = self.store.get(&added.tenant, finish.task).await?;
            // The store refuses an outcome of another lease; its tasks are of no use.
            let Some(task) = task.filter(|task| task.epoch == finish.epoch) else { continue };
            finish.then = Some(self.tasks(&task, &added).await?);
        }
        Ok(())
    }

    async fn tasks(&self, parent: &Task, added: &Added) -> store::Result<Arc<[NewTask]>> {
        let installation = self.settings.get().await?.settings.clone();
        let defaults = self.tenants.settings(&parent.lane.tenant, installation).await?;
        let now = self.store.now().await?;
        let (members, plan) = (added.members.tasks(), added.members.plan());
        let mut ids: Vec<Option<TaskId>> = vec![None; members.len()];
        let mut tasks = Vec::with_capacity(members.len());
        for (place, index) in (0..).zip(plan.order.iter().copied()) {
            let own = plan.parents[index].iter();
            let mut dependencies: Vec<_> = own
                .filter_map(|(it, on)| ids[*it].map(|parent| Dependency { parent, on: *on }))
                .collect();
            if dependencies.is_empty() {
                dependencies.push(Dependency { parent: parent.id, on: Condition::Success });
            }
            dependencies.sort_unstable();
            let latest = dependencies.iter().map(|it| it.parent).max().unwrap_or(parent.id);
            let id = derive(parent, &members[index], latest, place);
            ids[index] = Some(id);
            tasks.push(self.task(parent, &members[index], &defaults, (id, now), dependencies));
        }
        Ok(tasks.into())
    }

    fn task(
        &self,
        parent: &Task,
        member: &Member,
        defaults: &Settings,
        (id, now): (TaskId, Timestamp),
        dependencies: Vec<Dependency>,
    ) -> NewTask {
        let membership = parent.links.as_ref().and_then(|links| links.workflow.as_ref());
        let join = |own: &Membership| {
            let key = format!("{}.{}", own.key, member.key);
            let fits = key.chars().count() <= KEY_CHARS;
            Membership { id: own.id, key: if fits { key } else { id.to_string() } }
        };
        let links =
            Links { dependencies, workflow: membership.map(join), render: member.spec.render };
        let entropy = self.random.next();
        let minted = Minted { id, now, entropy, links };
        new_task(&parent.lane.tenant, member.spec.clone(), defaults, minted)
    }
}

/// The id of an added task: the same however often the outcome is sent, and another one for every run
/// of its parent. It lies after its parents.
fn derive(parent: &Task, member: &Member, latest: TaskId, place: u32) -> TaskId {
    let mut hasher = Sha256::new();
    hasher.update(parent.id.as_bytes());
    hasher.update(parent.run.to_be_bytes());
    json::hash_bytes(member.key.as_bytes(), &mut hasher);
    let digest: [u8; 32] = hasher.finalize().into();
    let (random, _) = digest.split_first_chunk::<8>().expect("a digest has 32 bytes");
    let granted_at = parent.granted_at.unwrap_or(parent.created_at);
    let base = granted_at.max(just_after(parent.id));
    let due = match member.spec.start {
        Start::At(instant) => base.max(instant),
        Start::After(_) => base,
    };
    let random = u64::from_be_bytes(*random);
    let id = TaskId::mint(due, place, random);
    if id > latest { id } else { TaskId::mint(just_after(latest), place, random) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_again_for_the_same_outcome_and_differ_otherwise() {
        let parent = crate::command::test_task();
        let member = |key: &str| Member {
            key: key.to_owned(),
            spec: crate::command::test_spec(),
            depends_on: Vec::new(),
        };
        let id = |parent: &Task, key: &str| derive(parent, &member(key), parent.id, 0);
        let first = id(&parent, "a");
        assert!(first > parent.id);
        assert_eq!(first, id(&parent, "a"));
        assert_ne!(first, id(&parent, "b"));
        let again = Task { run: 2, ..parent.clone() };
        assert_ne!(first, id(&again, "a"));
        let next = derive(&parent, &member("b"), first, 1);
        assert!(next > first);
    }
}
