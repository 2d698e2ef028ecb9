-- Queues from which nothing is granted.
CREATE TABLE pause (
    tenant TEXT    NOT NULL,
    queue  TEXT    NOT NULL,
    since  INTEGER NOT NULL,
    note   TEXT    NOT NULL,
    PRIMARY KEY (tenant, queue)
) STRICT, WITHOUT ROWID;
