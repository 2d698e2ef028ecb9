//! What is known of each workflow: what clients asked for, what they were told, and what the server
//! shows in the end.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use duly_core::id::WorkflowId;
use duly_core::state::Status;
use duly_core::workflow::Condition;

use super::book::{Book, Task};
use super::calls::{acknowledged, delay_after, earlier};
use crate::history::{Call, Member, Phase, ShownWorkflow};

/// All workflows of a run.
#[derive(Debug, Default)]
pub(super) struct Workflows {
    list: Vec<Workflow>,
    places: HashMap<Arc<str>, usize>,
}

/// A workflow that is named in a file.
#[derive(Debug)]
pub(super) struct Workflow {
    /// Its label `key`.
    pub(super) name: Arc<str>,
    /// How many submits were sent, and how many of them certainly did nothing.
    sent: u32,
    failed: u32,
    /// When a submit was first acknowledged.
    pub(super) acked_at: Option<u64>,
    /// The ids that answers gave it or that are shown, each once.
    pub(super) ids: BTreeSet<WorkflowId>,
    pub(super) cancel_asked: bool,
    pub(super) cancelled_at: Option<u64>,
    /// Its tasks: places of their keys.
    pub(super) members: Vec<usize>,
    /// When and how it is shown.
    pub(super) shown: Option<(u64, ShownWorkflow)>,
}

impl Workflows {
    pub(super) fn all(&self) -> &[Workflow] {
        &self.list
    }

    /// Where the workflow of this key is kept.
    pub(super) fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let (name, place) = (Arc::<str>::from(name), self.list.len());
        self.places.insert(Arc::clone(&name), place);
        self.list.push(Workflow {
            name,
            sent: 0,
            failed: 0,
            acked_at: None,
            ids: BTreeSet::new(),
            cancel_asked: false,
            cancelled_at: None,
            members: Vec::new(),
            shown: None,
        });
        place
    }

    /// Takes in what the server shows. One without a key was not made by a client of the run.
    pub(super) fn show(&mut self, at: u64, shown: ShownWorkflow) {
        let name = shown.key.clone().unwrap_or_else(|| shown.workflow.to_string());
        let place = self.place(&name);
        let workflow = &mut self.list[place];
        workflow.ids.insert(shown.workflow);
        workflow.shown = Some((at, shown));
    }
}

impl Workflow {
    /// Whether a submit may have made it.
    pub(super) fn may_exist(&self) -> bool {
        self.sent > self.failed || self.acked_at.is_some()
    }

    /// Its tasks, as far as they are known.
    pub(super) fn tasks<'a>(&'a self, book: &'a Book) -> impl Iterator<Item = &'a Task> {
        let ids = self.members.iter().filter_map(|place| book.keys[*place].task());
        ids.filter_map(|id| book.find(id))
    }

    /// How many of its tasks failed and have no child that takes care of it.
    pub(super) fn unhandled_failures(&self, book: &Book) -> usize {
        let needs = self.members.iter().flat_map(|place| &book.keys[*place].needs);
        let handled: HashSet<_> =
            needs.filter(|(_, on)| *on != Condition::Success).map(|(parent, _)| *parent).collect();
        let failed = |place: &&usize| {
            let task = book.keys[**place].task().and_then(|id| book.find(id));
            let end = task.and_then(|task| task.end.as_ref());
            end.is_some_and(|end| end.status == Status::Failed)
        };
        self.members.iter().filter(failed).filter(|place| !handled.contains(place)).count()
    }

    /// Whether it may have cancelled a task of its own.
    pub(super) fn may_cancel(&self, book: &Book) -> bool {
        let fails_fast = self.shown.as_ref().is_some_and(|(_, shown)| shown.fail_fast);
        self.cancel_asked || (fails_fast && self.unhandled_failures(book) > 0)
    }
}

/// A submit is about to be sent.
pub(super) fn submit_sent(book: &mut Book, at: u64, call: &Call, place: usize) {
    book.submits += 1;
    for (name, member) in &call.members {
        member_sent(book, at, place, name, member);
    }
    book.workflows.list[place].sent += 1;
}

fn member_sent(book: &mut Book, at: u64, workflow: usize, name: &str, member: &Member) {
    let place = book.key(name);
    let needs = member.needs.iter().map(|(parent, on)| (book.key(parent), *on)).collect();
    let key = &mut book.keys[place];
    key.sent += 1;
    key.needs = needs;
    // Counted from the release, which comes after the first send.
    let delayed_until = member.delay_seconds.and_then(|delay| delay_after(at, delay));
    key.delayed_until = earlier(key.delayed_until, delayed_until);
    // A repeated submit names them once more.
    if key.workflow.replace(workflow).is_none() {
        book.workflows.list[workflow].members.push(place);
    }
}

/// A submit was answered. Only the call itself says which tasks there are.
pub(super) fn submit_answered(book: &mut Book, at: u64, call: &Call, place: usize) {
    let workflow = &mut book.workflows.list[place];
    workflow.ids.extend(call.workflow);
    let members = workflow.members.clone();
    match call.phase {
        Phase::Invoke | Phase::Info => {}
        Phase::Fail => {
            workflow.failed += 1;
            members.iter().for_each(|member| book.keys[*member].failed += 1);
        }
        Phase::Ok => {
            workflow.acked_at = earlier(workflow.acked_at, Some(at));
            book.submits_ok += 1;
            for member in members {
                let id = call.member_ids.get(&*book.keys[member].name).copied();
                acknowledged(book, at, Some(member), id);
            }
        }
    }
}

pub(super) fn cancel_sent(book: &mut Book, place: usize) {
    book.workflows.list[place].cancel_asked = true;
}

pub(super) fn cancel_answered(book: &mut Book, at: u64, phase: Phase, place: usize) {
    if phase == Phase::Ok {
        let first = &mut book.workflows.list[place].cancelled_at;
        *first = earlier(*first, Some(at));
    }
}
