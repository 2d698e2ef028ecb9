-- What ties a task to others. Both are NULL for most tasks. `links`: 1 if the task has parents, 2 if
-- its payload is rendered, and 4 for every child that was ever stored.
ALTER TABLE task ADD COLUMN links INTEGER;
ALTER TABLE task ADD COLUMN workflow BLOB;

-- `condition`: 0 success, 1 failure, 2 done. `state`: 0 open, 1 satisfied, 2 broken.
CREATE TABLE edge (
    parent    BLOB    NOT NULL,
    child     BLOB    NOT NULL,
    condition INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

CREATE INDEX edge_child ON edge (child);

-- A row exists exactly while its task is BLOCKED. `open` counts the edges that are not satisfied. A
-- delay counts from the release; without one the task has a run time.
CREATE TABLE blocked (
    lane     INTEGER NOT NULL,
    task     BLOB    NOT NULL,
    open     INTEGER NOT NULL,
    delay_ms INTEGER,
    PRIMARY KEY (lane, task)
) STRICT, WITHOUT ROWID;

-- Blocked tasks with a broken edge, until the cascade has cancelled them.
CREATE TABLE doomed (
    task BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- `status`: 0 running, 1 success, 2 failed, 3 cancelled. `open` counts the tasks that have not ended,
-- `cancelled` is why it was cancelled, `failing` whether it fails fast and a task failed. `sweep` is 1
-- while the cascade has to look for tasks to cancel.
CREATE TABLE workflow (
    id          BLOB    NOT NULL PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    labels      TEXT,
    fail_fast   INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER,
    open        INTEGER NOT NULL,
    cancelled   TEXT,
    failing     INTEGER NOT NULL DEFAULT 0,
    sweep       INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX workflow_tenant ON workflow (tenant, id);
CREATE INDEX workflow_sweep ON workflow (sweep, id) WHERE sweep = 1;

CREATE TABLE member (
    workflow BLOB NOT NULL,
    task     BLOB NOT NULL,
    key      TEXT NOT NULL,
    PRIMARY KEY (workflow, task)
) STRICT, WITHOUT ROWID;
