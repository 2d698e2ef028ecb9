//! The only writer of `duly.task`, together with `functions/postgres/task_state.sql`. Every transition of
//! a stored task passes one of six hooks. A feature that follows the state of tasks attaches there, once
//! per hook: it gets a batch of tasks in the transaction that changes them, and nothing is called per
//! task. A hook without features costs nothing.
//!
//! | hook | receives | where | in the transaction of |
//! |---|---|---|---|
//! | stored | new tasks, and which of them are handed off | `duly.store_tasks` | a submit |
//! | granted | the tasks that are leased, with their epochs | `duly.grant_tasks` | a claim |
//! | waiting | tasks that are PENDING again or move within `due` | [`changes::Changes::waiting`] | a verb |
//! | ended | tasks that succeeded in a worker | `duly.end_tasks` | an exchange |
//! | | a task that succeeded in its handler's transaction | `duly.end_task_externally` | the handler |
//! | | tasks that ended in any other way | [`changes::Changes::ended`] | a verb |
//! | replayed | ended tasks whose next run begins | [`changes::Changes::replayed`] | a verb |
//! | deleted | ended tasks | [`deleted::delete_tasks`] | a verb |
//! | | all tasks of a day | [`deleted::drop_day`] | a sweep |
//!
//! [`changes::Changes::write`] writes what [`changes::Changes`] has collected, table by table. A feature
//! that has to follow all parts of a hook has one function in SQL, which each part calls with the ids that
//! it wrote.

mod attempts;
pub(super) mod changes;
mod dead_letters;
pub(super) mod deleted;
mod due;
pub(super) mod fields;
mod leases;
pub(super) mod state;
#[cfg(test)]
pub(super) mod test_rows;
