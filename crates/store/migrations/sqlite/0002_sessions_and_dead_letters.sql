-- What a session elsewhere is opened with, so that it outlives a restart; types and queues are
-- JSON. A session of this process has none of it.
ALTER TABLE session ADD COLUMN home INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN tenant TEXT;
ALTER TABLE session ADD COLUMN types TEXT;
ALTER TABLE session ADD COLUMN queues TEXT;

-- Deadlines that were moved; a row goes with its lease.
CREATE TABLE extension (
    task     BLOB    NOT NULL PRIMARY KEY,
    epoch    INTEGER NOT NULL,
    deadline INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tries that failed or were lost with their worker.
CREATE TABLE attempt (
    task       BLOB    NOT NULL,
    epoch      INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    session    BLOB,
    error      TEXT    NOT NULL,
    log        TEXT,
    PRIMARY KEY (task, epoch)
) STRICT, WITHOUT ROWID;

-- A row exists exactly while its task is FAILED.
CREATE TABLE dlq (
    failed_at   INTEGER NOT NULL,
    task        BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    error_group INTEGER NOT NULL,
    PRIMARY KEY (failed_at, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX dlq_group ON dlq (lane, error_group, failed_at);

INSERT INTO dlq (failed_at, task, lane, error_group)
SELECT finished_at, id, lane, error_group(error) FROM task WHERE status = 4;
