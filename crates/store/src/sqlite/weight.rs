//! What deleting a task frees: the writer has to walk through all of it, so that one commit takes
//! only so much.

use duly_core::id::TaskId;
use duly_core::limits::LOG_PIECE_OVERHEAD;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Result;

/// Bytes beyond the task's row. Lengths are in the heads of rows: no text is read.
const WEIGHT: &str = "/* delete.weight */ SELECT coalesce(octet_length(result), 0)
        + coalesce((SELECT octet_length(body) FROM payload WHERE payload.task = task.id), 0)
        + coalesce((SELECT octet_length(checkpoint) FROM progress
            WHERE progress.task = task.id), 0)
        + coalesce((SELECT sum(octet_length(text) + ?2) FROM log WHERE log.task = task.id), 0)
    FROM task WHERE id = ?1";

/// What deleting a task frees; nothing if it is absent.
pub(super) fn of(connection: &Connection, task: TaskId) -> Result<usize> {
    let mut statement = connection.prepare_cached(WEIGHT)?;
    let weight =
        statement.query_row(params![task.as_bytes(), LOG_PIECE_OVERHEAD], |row| row.get(0));
    Ok(weight.optional()?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;
    use crate::sqlite::migrate;

    /// A task with a result, a payload, a checkpoint and the logs of two attempts, 1.5 MiB in all.
    fn large(connection: &Connection, number: u32) -> TaskId {
        let id = TaskId::mint(Timestamp::from_millis(1_900_000_000_000), number, 7);
        let each = 1536 * 1024 / 10;
        for (statement, bytes) in [
            (
                "INSERT INTO task (id, status, epoch, lane, rank, run_at, created_at, finished_at,
                    run, charged, retries, losses, result)
                 VALUES (?, 3, 2, 1, 4, 1, 1, 5, 1, 0, 0, 0, hex(zeroblob(?)))",
                each,
            ),
            ("INSERT INTO payload (task, body) VALUES (?, hex(zeroblob(?)))", each),
            (
                "INSERT INTO progress (task, at, done, checkpoint)
                 VALUES (?, 1, 1, hex(zeroblob(?)))",
                each,
            ),
            (
                "INSERT INTO log (task, epoch, offset, at, run, attempt, text)
                 VALUES (?, 1, 0, 1, 1, 1, hex(zeroblob(?)))",
                each,
            ),
            (
                "INSERT INTO log (task, epoch, offset, at, run, attempt, text)
                 VALUES (?, 2, 0, 1, 1, 2, hex(zeroblob(?)))",
                each,
            ),
        ] {
            connection.execute(statement, params![id.as_bytes(), bytes]).unwrap();
        }
        id
    }

    #[test]
    fn everything_about_a_task_has_its_weight() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let id = large(&connection, 1);
        let each = 1536 * 1024 / 10 * 2;
        let mut left = 5 * each + 2 * LOG_PIECE_OVERHEAD;
        assert_eq!(of(&connection, id).unwrap(), left);
        for (statement, bytes) in [
            ("DELETE FROM log WHERE epoch = 1", each + LOG_PIECE_OVERHEAD),
            ("DELETE FROM log", each + LOG_PIECE_OVERHEAD),
            ("DELETE FROM progress", each),
            ("DELETE FROM payload", each),
            ("UPDATE task SET result = NULL", each),
            ("DELETE FROM task", 0),
        ] {
            connection.execute(statement, []).unwrap();
            left -= bytes;
            assert_eq!(of(&connection, id).unwrap(), left, "{statement}");
        }
    }
}
