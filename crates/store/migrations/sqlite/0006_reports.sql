-- How far the attempts of a task's run have come. Beside the task, so that tasks that never say pay
-- nothing for it.
CREATE TABLE progress (
    task       BLOB    NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    done       INTEGER NOT NULL,
    total      INTEGER,
    message    TEXT,
    checkpoint TEXT
) STRICT, WITHOUT ROWID;

-- What attempts log, in pieces; `offset` counts the bytes of the attempt's log before a piece.
CREATE TABLE log (
    task    BLOB    NOT NULL,
    epoch   INTEGER NOT NULL,
    offset  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    PRIMARY KEY (task, epoch, offset)
) STRICT, WITHOUT ROWID;

INSERT INTO log (task, epoch, offset, at, run, attempt, text)
SELECT task, epoch, 0, ended_at, run, attempt, log FROM attempt WHERE log <> '';

ALTER TABLE attempt DROP COLUMN log;
