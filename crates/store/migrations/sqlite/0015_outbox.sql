-- Who receives events. `subscriptions` is JSON. The position is a row of `outbox` and an event in it, from
-- 1: everything up to there was received. `node` serves the sink under `term` until `held_until`.
CREATE TABLE sink (
    name             TEXT    NOT NULL PRIMARY KEY,
    subscriptions    TEXT    NOT NULL,
    window_ms        INTEGER,
    created_at       INTEGER NOT NULL,
    put_at           INTEGER NOT NULL,
    position         INTEGER NOT NULL,
    position_index   INTEGER NOT NULL,
    node             BLOB,
    term             INTEGER NOT NULL,
    held_until       INTEGER NOT NULL,
    suspended_at     INTEGER,
    suspended_reason TEXT,
    trouble          TEXT
) STRICT, WITHOUT ROWID;

-- The events of a transaction, in order, packed into one row. Numbers are never used again.
CREATE TABLE outbox (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    body   BLOB    NOT NULL
) STRICT;
