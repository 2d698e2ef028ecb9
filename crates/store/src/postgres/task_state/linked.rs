//! Hook `stored` for tasks that are tied to others: their rows, the edges to them and their part in
//! workflows. The caller has locked the parents and then the workflows, so that a parent either ends
//! before, and is seen as ended, or ends afterwards and finds the edges.

use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::workflow::{Condition, EdgeState};
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use super::blocked::{self, BlockedRow};
use super::state::each;
use crate::postgres::error::Result;
use crate::postgres::outbox::ToldTask;
use crate::postgres::range::{LaneId, Range, rank};
use crate::postgres::row;
use crate::postgres::verb::Scope;

/// Rows that one statement inserts.
const TASKS: usize = 1_000;
const EDGES: usize = 10_000;

/// Bits of `task.links`. Above them it counts children.
pub(in crate::postgres) const HAS_PARENTS: i32 = 1;
pub(in crate::postgres) const RENDERS: i32 = 2;
pub(in crate::postgres) const ONE_CHILD: i32 = 4;

/// A task on its way into the table.
#[derive(Clone, Copy)]
pub(in crate::postgres) struct NewLinked<'a> {
    pub(in crate::postgres) task: &'a NewTask,
    pub(in crate::postgres) lane: LaneId,
}

#[derive(Clone, Copy)]
struct EdgeRow {
    parent: Uuid,
    child: Uuid,
    condition: i16,
    state: i16,
}

/// Stores new tasks. `parents` are those outside of the batch and what state they are in; one that is not
/// there is gone. Answers which tasks are BLOCKED.
pub(in crate::postgres) async fn store(
    scope: &mut Scope<'_>,
    tasks: &[NewLinked<'_>],
    parents: &HashMap<TaskId, Status>,
) -> Result<HashSet<TaskId>> {
    let mut tasks = tasks.to_vec();
    tasks.sort_unstable_by_key(|it| it.task.id);
    let own: HashSet<TaskId> = tasks.iter().map(|it| it.task.id).collect();
    let (mut edges, mut children) = (Vec::new(), HashMap::<TaskId, i32>::default());
    let (mut open, mut doomed) = (HashMap::<TaskId, i32>::default(), Vec::new());
    for NewLinked { task, .. } in &tasks {
        let mut broken = false;
        for it in task.dependencies() {
            let ended = parents.get(&it.parent).copied().unwrap_or(Status::Cancelled);
            let state = match own.contains(&it.parent) {
                true => EdgeState::Open,
                false if parents.contains_key(&it.parent) => EdgeState::of(it.on, ended),
                false => EdgeState::Broken,
            };
            broken |= state == EdgeState::Broken;
            *open.entry(task.id).or_default() += i32::from(state != EdgeState::Satisfied);
            *children.entry(it.parent).or_default() += 1;
            edges.push(EdgeRow {
                parent: row::uuid(it.parent),
                child: row::uuid(task.id),
                condition: encode_condition(it.on),
                state: encode_edge_state(state),
            });
        }
        doomed.extend(broken.then(|| row::uuid(task.id)));
    }
    let blocked: HashSet<TaskId> =
        open.into_iter().filter(|(_, open)| *open > 0).map(|it| it.0).collect();
    raise_children(scope, children.iter().filter(|(parent, _)| parents.contains_key(parent)))
        .await?;
    for part in tasks.chunks(TASKS) {
        insert(scope, part, &blocked, &children).await?;
    }
    insert_waiting(scope, &tasks, &blocked, &edges).await?;
    insert_edges(scope, edges).await?;
    join_workflows(scope, &tasks).await?;
    doom(scope, &doomed).await?;
    for NewLinked { task, lane } in &tasks {
        let told = ToldTask { id: row::uuid(task.id), lane: *lane, run: 1, epoch: 0 };
        scope.told.tell(EventKind::TaskCreated, told);
    }
    Ok(blocked)
}

/// The cascade is to cancel these BLOCKED tasks, each of which has a broken edge. They come sorted.
pub(in crate::postgres) async fn doom(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    if !tasks.is_empty() {
        let insert = "/* linked.doom */ INSERT INTO duly.doomed (child) SELECT unnest($1::uuid[])
            ON CONFLICT DO NOTHING";
        scope.execute(insert, &[&tasks]).await?;
    }
    Ok(())
}

/// Parents outside of the batch count their new children.
async fn raise_children(
    scope: &Scope<'_>,
    children: impl Iterator<Item = (&TaskId, &i32)>,
) -> Result<()> {
    let mut raised: Vec<_> =
        children.map(|(parent, count)| (row::uuid(*parent), count * ONE_CHILD)).collect();
    if raised.is_empty() {
        return Ok(());
    }
    raised.sort_unstable();
    let update = "/* linked.children */ UPDATE duly.task t
        SET links = coalesce(t.links, 0) + ($2::integer[])[width_bucket(t.id, $1)]
        WHERE t.id = ANY($1::uuid[])";
    scope.execute(update, &[&each(&raised, |it| it.0), &each(&raised, |it| it.1)]).await?;
    Ok(())
}

async fn insert(
    scope: &Scope<'_>,
    tasks: &[NewLinked<'_>],
    blocked: &HashSet<TaskId>,
    children: &HashMap<TaskId, i32>,
) -> Result<()> {
    let insert = "/* linked.store */ INSERT INTO duly.task (id, run_at, created_at, epoch, lane, run,
            charged, retries, losses, timeout_ms, status, rank, back_off, labels, payload, links,
            workflow)
        SELECT n.id, n.run_at, $13, 0, n.lane, 1, 0, n.retries, 0, n.timeout_ms, n.status, n.rank,
               n.back_off, n.labels, n.payload, n.links, n.workflow
        FROM unnest($1::uuid[], $2::bigint[], $3::integer[], $4::integer[], $5::integer[],
                    $6::smallint[], $7::smallint[], $8::text[], $9::text[], $10::text[],
                    $11::integer[], $12::uuid[])
             n(id, run_at, lane, retries, timeout_ms, status, rank, back_off, labels, payload, links,
               workflow)";
    let status = |task: &NewTask| match blocked.contains(&task.id) {
        true => row::encode_status(Status::Blocked),
        false => row::encode_status(Status::Pending),
    };
    let back_offs = each(tasks, |it| row::encode_back_off(&it.task.back_off));
    let labels = each(tasks, |it| row::encode_labels(&it.task.labels));
    scope
        .execute(
            insert,
            &[
                &each(tasks, |it| row::uuid(it.task.id)),
                &each(tasks, |it| it.task.due_at(scope.now).millis()),
                &each(tasks, |it| it.lane),
                &each(tasks, |it| row::encode_count(it.task.retries)),
                &each(tasks, |it| row::encode_duration(it.task.timeout)),
                &each(tasks, |it| status(it.task)),
                &each(tasks, |it| rank(it.task.priority)),
                &back_offs,
                &labels,
                &each(tasks, |it| &*it.task.payload),
                &each(tasks, |it| links(it.task, children)),
                &each(tasks, |it| workflow(it.task)),
                &scope.now.millis(),
            ],
        )
        .await?;
    Ok(())
}

/// `None` if nothing ties the task to others.
fn links(task: &NewTask, children: &HashMap<TaskId, i32>) -> Option<i32> {
    let children = children.get(&task.id).copied();
    if task.links.is_none() && children.is_none() {
        return None;
    }
    let parents = if task.dependencies().is_empty() { 0 } else { HAS_PARENTS };
    let renders = if task.links.as_ref().is_some_and(|it| it.render) { RENDERS } else { 0 };
    Some(parents | renders | (children.unwrap_or_default() * ONE_CHILD))
}

fn workflow(task: &NewTask) -> Option<Uuid> {
    let membership = task.links.as_ref()?.workflow.as_ref()?;
    Some(row::workflow_uuid(membership.id))
}

/// Rows for tasks that wait, be it for their time or for their parents.
async fn insert_waiting(
    scope: &mut Scope<'_>,
    tasks: &[NewLinked<'_>],
    blocked: &HashSet<TaskId>,
    edges: &[EdgeRow],
) -> Result<()> {
    let mut open = HashMap::<Uuid, i32>::default();
    let satisfied = encode_edge_state(EdgeState::Satisfied);
    for edge in edges.iter().filter(|edge| edge.state != satisfied) {
        *open.entry(edge.child).or_default() += 1;
    }
    let (mut rows, mut due) = (Vec::new(), Vec::new());
    for NewLinked { task, lane } in tasks {
        let id = row::uuid(task.id);
        if blocked.contains(&task.id) {
            let delay_ms = task.delay.map(row::encode_delay);
            rows.push(BlockedRow { task: id, lane: *lane, open: open[&id], delay_ms });
        } else {
            let range = Range { lane: *lane, rank: rank(task.priority) };
            due.push((range, task.due_at(scope.now).millis(), id));
        }
    }
    blocked::add(scope, &rows).await?;
    if !due.is_empty() {
        let insert = "/* linked.due */ INSERT INTO duly.due (lane, rank, run_at, task)
            SELECT * FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::uuid[])";
        let (lanes, ranks) = (each(&due, |it| it.0.lane), each(&due, |it| it.0.rank));
        let (run_ats, ids) = (each(&due, |it| it.1), each(&due, |it| it.2));
        scope.execute(insert, &[&lanes, &ranks, &run_ats, &ids]).await?;
        due.iter().for_each(|(range, run_at, _)| scope.wakes.add(*range, *run_at));
    }
    Ok(())
}

async fn insert_edges(scope: &Scope<'_>, mut edges: Vec<EdgeRow>) -> Result<()> {
    edges.sort_unstable_by_key(|edge| (edge.parent, edge.child));
    let insert = "/* linked.edges */ INSERT INTO duly.edge (parent, child, condition, state)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::smallint[])";
    for part in edges.chunks(EDGES) {
        let (parents, children) = (each(part, |it| it.parent), each(part, |it| it.child));
        let (conditions, states) = (each(part, |it| it.condition), each(part, |it| it.state));
        scope.execute(insert, &[&parents, &children, &conditions, &states]).await?;
    }
    Ok(())
}

/// Tasks become members of their workflows. One that is on its way to its end is looked at again.
async fn join_workflows(scope: &Scope<'_>, tasks: &[NewLinked<'_>]) -> Result<()> {
    let member = |it: &NewLinked<'_>| {
        let membership = it.task.links.as_ref()?.workflow.as_ref()?;
        Some((row::workflow_uuid(membership.id), row::uuid(it.task.id), membership.key.clone()))
    };
    let members: Vec<_> = tasks.iter().filter_map(member).collect();
    if members.is_empty() {
        return Ok(());
    }
    let workflows = each(&members, |it| it.0);
    let insert = "/* linked.members */ INSERT INTO duly.member (workflow, task, key)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[])";
    let keys = each(&members, |it| it.2.as_str());
    scope.execute(insert, &[&workflows, &each(&members, |it| it.1), &keys]).await?;
    let update = "/* linked.open */ UPDATE duly.workflow w
        SET open = w.open + n.tasks, sweep = w.sweep OR w.failing OR w.cancelled IS NOT NULL
        FROM (SELECT u.id, count(*)::integer AS tasks FROM unnest($1::uuid[]) u(id) GROUP BY u.id) n
        WHERE w.id = n.id";
    scope.execute(update, &[&workflows]).await?;
    Ok(())
}

/// Edges, as pairs of parent and child, are open again. Their children are locked.
pub(in crate::postgres) async fn reopen_edges(
    scope: &Scope<'_>,
    edges: &[(Uuid, Uuid)],
) -> Result<()> {
    if edges.is_empty() {
        return Ok(());
    }
    let update = "/* linked.reopen_edges */ UPDATE duly.edge e SET state = 0
        FROM unnest($1::uuid[], $2::uuid[]) r(parent, child)
        WHERE e.parent = r.parent AND e.child = r.child";
    let (parents, children) = (each(edges, |it| it.0), each(edges, |it| it.1));
    scope.execute(update, &[&parents, &children]).await?;
    // What was broken may not be any more; if it is, the parent's next end says so again.
    let forget = "/* linked.undoom */ DELETE FROM duly.doomed d USING unnest($1::uuid[]) r(child)
        WHERE d.child = r.child AND NOT EXISTS (
            SELECT FROM duly.edge e WHERE e.child = d.child AND e.state = 2)";
    scope.execute(forget, &[&children]).await?;
    Ok(())
}

pub(in crate::postgres) const fn encode_condition(condition: Condition) -> i16 {
    match condition {
        Condition::Success => 0,
        Condition::Failure => 1,
        Condition::Done => 2,
    }
}

pub(in crate::postgres) fn decode_condition(code: i16, child: Uuid) -> Result<Condition> {
    let found = Condition::ALL.into_iter().find(|it| encode_condition(*it) == code);
    found.ok_or_else(|| row::corrupt("edge", "condition", child))
}

pub(in crate::postgres) const fn encode_edge_state(state: EdgeState) -> i16 {
    match state {
        EdgeState::Open => 0,
        EdgeState::Satisfied => 1,
        EdgeState::Broken => 2,
    }
}

pub(in crate::postgres) fn decode_edge_state(code: i16, child: Uuid) -> Result<EdgeState> {
    let states = [EdgeState::Open, EdgeState::Satisfied, EdgeState::Broken];
    let found = states.into_iter().find(|it| encode_edge_state(*it) == code);
    found.ok_or_else(|| row::corrupt("edge", "state", child))
}
