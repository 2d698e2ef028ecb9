-- (tenant, queue, type), numbered, so that rows and due keys stay small.
CREATE TABLE lane (
    id     INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    queue  TEXT NOT NULL,
    type   TEXT NOT NULL,
    UNIQUE (tenant, queue, type)
) STRICT;

-- One row per task. What changes stands first and the payload last, so that an update moves few
-- bytes; a payload too large for the row stands in its own table and is never rewritten.
CREATE TABLE task (
    id          BLOB    NOT NULL PRIMARY KEY,
    status      INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    session     BLOB,
    lane        INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    run_at      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    granted_at  INTEGER,
    finished_at INTEGER,
    run         INTEGER NOT NULL,
    charged     INTEGER NOT NULL,
    retries     INTEGER NOT NULL,
    losses      INTEGER NOT NULL,
    timeout_ms  INTEGER,
    back_off    TEXT,
    error       TEXT,
    labels      TEXT,
    result      TEXT,
    payload     TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE payload (
    task BLOB NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A row exists exactly while its task is PENDING.
CREATE TABLE due (
    lane   INTEGER NOT NULL,
    rank   INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    task   BLOB    NOT NULL,
    PRIMARY KEY (lane, rank, run_at, task)
) STRICT, WITHOUT ROWID;

-- One row per batch of leases, kept while one of them lives: from here leases are found again
-- after a crash. `leases` packs 16 bytes of task and 4 of epoch each.
CREATE TABLE grant_log (
    session    BLOB    NOT NULL,
    sequence   INTEGER NOT NULL,
    granted_at INTEGER NOT NULL,
    leases     BLOB    NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    id        BLOB    NOT NULL PRIMARY KEY,
    name      TEXT    NOT NULL,
    opened_at INTEGER NOT NULL,
    ended_at  INTEGER
) STRICT, WITHOUT ROWID;

-- `key` hashes tenant and key, `body` what was asked for.
CREATE TABLE idempotency (
    key        BLOB    NOT NULL PRIMARY KEY,
    task       BLOB    NOT NULL,
    body       BLOB    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at);

-- Written when somebody asks whether the store takes writes again after it did not: as much as a
-- busy commit, so that a disk with room for one page only does not pass for healthy.
CREATE TABLE probe (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL,
    bulk  BLOB
) STRICT;

INSERT INTO probe (id, count) VALUES (1, 0);
