//! A layer that counts the calls of a store, fails them, holds their answers back and changes them.

#![expect(clippy::unwrap_used, reason = "a lock that was poisoned fails its test")]

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use duly_core::id::{NodeId, ScheduleId, SessionId, TaskId};
use duly_core::lease::{Finish, Outcome};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Decide, Error, Exchange, Leader, OpenSession, OpenedSession, Result, Store, Submit,
};
use duly_store::layer::{BoxFuture, Call, Layer};
use tokio::sync::{Notify, Semaphore};

use crate::world::TTL;

pub(crate) struct Faults {
    store: Arc<dyn Store>,
    /// How often each call was made, by its name.
    calls: Mutex<HashMap<&'static str, usize>>,
    /// The exchanges that workers made, without those of the engine for its own tasks.
    exchanges: AtomicUsize,
    /// The sessions by the names of their workers.
    opened: Mutex<Vec<(String, SessionId)>>,
    /// How many of the next calls fail.
    failures: AtomicUsize,
    failing_submit: AtomicUsize,
    /// Answers to steps of bulk orders that will be lost.
    lost_steps: AtomicUsize,
    /// Answers to decisions of slots that will be lost.
    lost_decisions: AtomicUsize,
    /// The schedule that cannot be decided.
    undecidable: Mutex<Option<ScheduleId>>,
    schedules_fail: AtomicBool,
    unreadable: AtomicBool,
    sessions_hidden: AtomicBool,
    parents_unreadable: AtomicBool,
    damaged: AtomicBool,
    poison: Mutex<Option<TaskId>>,
    releases_fail: AtomicBool,
    gate: Semaphore,
    held: Notify,
    cancelled_at_place: Mutex<Option<TaskId>>,
    /// Sessions of this node that other nodes have ended.
    pub(crate) ended: Mutex<Vec<SessionId>>,
    /// Whether another node leads.
    pub(crate) another_leads: AtomicBool,
    /// Whether calls to take the lead fail.
    pub(crate) lead_fails: AtomicBool,
    /// Whether calls to keep sessions alive fail.
    pub(crate) keep_alive_fails: AtomicBool,
}

impl Faults {
    /// None, around this store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            calls: Mutex::default(),
            exchanges: AtomicUsize::new(0),
            opened: Mutex::default(),
            failures: AtomicUsize::new(0),
            failing_submit: AtomicUsize::new(0),
            lost_steps: AtomicUsize::new(0),
            lost_decisions: AtomicUsize::new(0),
            undecidable: Mutex::default(),
            schedules_fail: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
            sessions_hidden: AtomicBool::new(false),
            parents_unreadable: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            poison: Mutex::default(),
            releases_fail: AtomicBool::new(false),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            held: Notify::new(),
            cancelled_at_place: Mutex::default(),
            ended: Mutex::default(),
            another_leads: AtomicBool::new(false),
            lead_fails: AtomicBool::new(false),
            keep_alive_fails: AtomicBool::new(false),
        }
    }

    /// How often a call was made.
    pub(crate) fn calls(&self, name: &str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// How often workers have exchanged outcomes for leases.
    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.load(Ordering::SeqCst)
    }

    /// Whether the sessions can be read.
    pub(crate) fn set_readable(&self, readable: bool) {
        self.unreadable.store(!readable, Ordering::SeqCst);
    }

    /// No session is listed from now on, as if all had ended and their leases were still to be taken
    /// back.
    pub(crate) fn hide_sessions(&self) {
        self.sessions_hidden.store(true, Ordering::SeqCst);
    }

    /// Whether the parents of tasks can be read.
    pub(crate) fn set_parents_readable(&self, readable: bool) {
        self.parents_unreadable.store(!readable, Ordering::SeqCst);
    }

    /// Whether the newest settings are damaged. They are replaced by the next change.
    pub(crate) fn set_damaged(&self, damaged: bool) {
        self.damaged.store(damaged, Ordering::SeqCst);
    }

    /// The next calls of `submit`, `exchange` and `report` answer that the store is unavailable.
    pub(crate) fn fail_next(&self, calls: usize) {
        self.failures.store(calls, Ordering::SeqCst);
    }

    /// This call of `submit` fails, counted from the first.
    pub(crate) fn fail_submit(&self, number: usize) {
        self.failing_submit.store(number, Ordering::SeqCst);
    }

    /// The next steps of bulk orders are made, and their answers are lost.
    pub(crate) fn lose_steps(&self, steps: usize) {
        self.lost_steps.store(steps, Ordering::SeqCst);
    }

    /// The next decisions of slots are made, and their answers are lost.
    pub(crate) fn lose_decisions(&self, decisions: usize) {
        self.lost_decisions.store(decisions, Ordering::SeqCst);
    }

    /// Every call that decides slots of this schedule fails for good.
    pub(crate) fn fail_decisions_of(&self, schedule: Option<ScheduleId>) {
        *self.undecidable.lock().unwrap() = schedule;
    }

    /// Whether calls that read changed schedules or decide slots answer that the store is unavailable.
    pub(crate) fn set_schedules_fail(&self, fail: bool) {
        self.schedules_fail.store(fail, Ordering::SeqCst);
    }

    /// Every exchange with an outcome other than a release of this task fails for good.
    pub(crate) fn poison(&self, task: TaskId) {
        *self.poison.lock().unwrap() = Some(task);
    }

    /// A release of the poisoned task fails as well.
    pub(crate) fn poison_releases(&self) {
        self.releases_fail.store(true, Ordering::SeqCst);
    }

    /// This task is cancelled just before its place in the queue is read.
    pub(crate) fn cancel_at_place(&self, task: TaskId) {
        *self.cancelled_at_place.lock().unwrap() = Some(task);
    }

    /// The newest session of a worker of this name.
    pub(crate) fn last_opened(&self, name: &str) -> SessionId {
        let opened = self.opened.lock().unwrap();
        opened.iter().rfind(|(worker, _)| worker == name).unwrap().1
    }

    /// Answers of submits and changes of the settings are held back from now on, and so are ends of
    /// sessions before they are made.
    pub(crate) fn hold(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    /// Waits until an answer is held back.
    pub(crate) async fn held(&self) {
        self.held.notified().await;
    }

    /// Lets the answers pass.
    pub(crate) fn go_on(&self) {
        self.gate.add_permits(1000);
    }

    fn observe(&self, call: Call<'_>) {
        *self.calls.lock().unwrap().entry(call.name).or_default() += 1;
        if let Some(session) = call.argument::<OpenSession>() {
            self.opened.lock().unwrap().push((session.name.clone(), session.id));
        }
        if let Some(exchange) = call.argument::<Exchange>() {
            let opened = self.opened.lock().unwrap();
            let system = |(name, id): &(String, _)| name == "system" && *id == exchange.session;
            let own = opened.iter().any(system);
            self.exchanges.fetch_add(usize::from(!own), Ordering::SeqCst);
        }
    }

    /// What happens before a call is made, or instead of it.
    async fn before(&self, call: Call<'_>) -> Result<()> {
        match call.name {
            "submit" => self.before_submit(call.argument().unwrap()),
            "exchange" => self.before_exchange(call.argument().unwrap()),
            "report" => self.fail(),
            "sessions" => unavailable_if(&self.unreadable),
            "parents" => unavailable_if(&self.parents_unreadable),
            "keep_alive" => unavailable_if(&self.keep_alive_fails),
            "lead" => unavailable_if(&self.lead_fails),
            "settings" if self.damaged.load(Ordering::SeqCst) => {
                Err(Error::Corrupt { table: "settings", column: "body", id: "1".to_owned() })
            }
            "schedules_changed" => unavailable_if(&self.schedules_fail),
            "decide_slots" => self.before_decisions(call.argument::<Vec<Decide>>().unwrap()),
            "place" => self.before_place().await,
            "end_session" => {
                self.gate.acquire().await.unwrap().forget();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn before_submit(&self, batch: &Submit) -> Result<()> {
        if self.calls("submit") == self.failing_submit.load(Ordering::SeqCst) {
            self.fail_next(1);
        }
        self.fail()?;
        if batch.tasks.iter().any(|task| task.lane.task_type.as_str() == "blocked") {
            return Err(Error::Blocked { reason: "told to".to_owned() });
        }
        Ok(())
    }

    fn before_exchange(&self, exchange: &Exchange) -> Result<()> {
        self.fail()?;
        let poison = *self.poison.lock().unwrap();
        let any = self.releases_fail.load(Ordering::SeqCst);
        let bad = |finish: &Finish| {
            Some(finish.task) == poison && (any || finish.outcome != Outcome::Release)
        };
        if exchange.finishes.iter().any(bad) {
            let id = poison.unwrap().to_string();
            return Err(Error::Corrupt { table: "task", column: "told to", id });
        }
        Ok(())
    }

    fn before_decisions(&self, decisions: &[Decide]) -> Result<()> {
        unavailable_if(&self.schedules_fail)?;
        let bad = *self.undecidable.lock().unwrap();
        if decisions.iter().any(|decision| Some(decision.schedule) == bad) {
            let id = bad.unwrap().to_string();
            return Err(Error::Corrupt { table: "schedule", column: "told to", id });
        }
        Ok(())
    }

    async fn before_place(&self) -> Result<()> {
        let cancelled = self.cancelled_at_place.lock().unwrap().take();
        if let Some(id) = cancelled {
            let (tenant, tasks) = (TenantName::default_tenant(), vec![id]);
            self.store.cancel(CancelTasks { tenant, tasks, reason: String::new() }).await?;
        }
        Ok(())
    }

    /// What happens to the answer of a call.
    async fn after<T: 'static>(&self, call: Call<'_>, mut answer: T) -> Result<T> {
        match call.name {
            "submit" | "put_settings" => {
                if call.name == "put_settings" {
                    self.set_damaged(false);
                }
                self.held.notify_one();
                self.gate.acquire().await.unwrap().forget();
            }
            "carry_out" if count_down(&self.lost_steps) => {
                return Err(Error::Unavailable { reason: "the answer was lost".to_owned() });
            }
            "decide_slots" if count_down(&self.lost_decisions) => {
                return Err(Error::Unavailable { reason: "the answer was lost".to_owned() });
            }
            "sessions" if self.sessions_hidden.load(Ordering::SeqCst) => {
                let open: &mut Vec<OpenedSession> = of_type(&mut answer);
                open.clear();
            }
            "keep_alive" => {
                let ended: &mut Vec<SessionId> = of_type(&mut answer);
                ended.append(&mut self.ended.lock().unwrap());
            }
            "lead" if self.store.node() != NodeId::ONLY => {
                let until = Some(self.store.now().await?.plus(TTL));
                let leader: &mut Leader = of_type(&mut answer);
                let another = self.another_leads.load(Ordering::SeqCst);
                let node = if another { NodeId::from_bytes([7; 16]) } else { leader.node };
                *leader = Leader { node, until, ..*leader };
            }
            _ => {}
        }
        Ok(answer)
    }

    fn fail(&self) -> Result<()> {
        if count_down(&self.failures) { Err(unavailable()) } else { Ok(()) }
    }
}

impl Layer for Faults {
    async fn call<'a, T, F>(&'a self, call: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        self.observe(call);
        self.before(call).await?;
        let answer = inner().await?;
        self.after(call, answer).await
    }
}

fn of_type<T: 'static>(answer: &mut impl Any) -> &mut T {
    let answer: &mut dyn Any = answer;
    answer.downcast_mut().expect("the answer of this call")
}

/// Whether there was something left to count.
fn count_down(counter: &AtomicUsize) -> bool {
    let left = |left: usize| left.checked_sub(1);
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
}

fn unavailable() -> Error {
    Error::Unavailable { reason: "told to".to_owned() }
}

fn unavailable_if(fails: &AtomicBool) -> Result<()> {
    if fails.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) }
}
