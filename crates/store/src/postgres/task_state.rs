//! The only writer of `duly.task`, together with `functions/postgres/task_state.sql`. Every transition of
//! a stored task passes one of seven hooks. A feature that follows the state of tasks attaches there, once
//! per hook: it gets a batch of tasks in the transaction that changes them, and nothing is called per
//! task. A hook without features costs nothing.
//!
//! | hook | receives | where | in the transaction of |
//! |---|---|---|---|
//! | stored | new tasks, and which of them are handed off | `duly.store_tasks` | a submit |
//! | | new tasks that are tied to others | [`linked::store`] | a verb |
//! | unblocked | BLOCKED tasks whose edges are satisfied | `duly.settle_tasks` | what ended a parent |
//! | granted | the tasks that are leased, with their epochs | `duly.grant_tasks` | a claim |
//! | waiting | tasks that are PENDING again or move within `due` | [`changes::Changes::waiting`] | a verb |
//! | ended | tasks that succeeded in a worker | `duly.end_tasks` | an exchange |
//! | | a task that succeeded in its handler's transaction | `duly.end_task_externally` | the handler |
//! | | tasks that ended in any other way | [`changes::Changes::ended`] | a verb |
//! | replayed | ended tasks whose next run begins | [`changes::Changes::replayed`] | a verb |
//! | deleted | ended tasks | [`deleted::delete_tasks`] | a verb |
//! | | all tasks of a day | [`deleted::drop_day`] | a sweep |
//!
//! Each part of `ended` settles tasks that are tied to others by `duly.settle_tasks`, in the same
//! transaction. Tasks without links are told apart by a column that the part has read anyway.
//!
//! [`changes::Changes::write`] writes what [`changes::Changes`] has collected, table by table. A feature
//! that has to follow all parts of a hook has one function in SQL, which each part calls with the ids that
//! it wrote.
//!
//! Events show how. Each call from a node is one transaction, and what it changes is told by one call of
//! `duly.tell`. Parts in SQL answer with what there is to tell, or tell it themselves; parts in Rust collect
//! it in [`Scope::told`](super::verb::Scope). Whether anything is wanted at all is read once per call: in
//! SQL by the function that a node calls, in Rust along with the time at which the transaction begins.

mod attempts;
pub(super) mod blocked;
pub(super) mod changes;
mod dead_letters;
pub(super) mod deleted;
mod due;
pub(super) mod fields;
mod leases;
pub(super) mod linked;
mod settle;
pub(super) mod state;
#[cfg(test)]
pub(super) mod test_rows;
