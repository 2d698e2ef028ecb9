-- Queues from which nothing is granted.
CREATE TABLE duly.pause (
    tenant text COLLATE "C" NOT NULL,
    queue  text COLLATE "C" NOT NULL,
    since  bigint NOT NULL,
    note   text   NOT NULL,
    PRIMARY KEY (tenant, queue)
);

-- The installation's settings, one row per version; the newest counts. `body` is JSON.
CREATE TABLE duly.settings (
    version    bigint NOT NULL PRIMARY KEY,
    changed_at bigint NOT NULL,
    comment    text,
    body       text   NOT NULL
);

-- How far the attempts of a task's run have come. Beside the task, so that tasks that never say pay
-- nothing for it.
CREATE TABLE duly.progress (
    task       uuid   NOT NULL PRIMARY KEY,
    at         bigint NOT NULL,
    done       bigint NOT NULL,
    total      bigint,
    message    text,
    checkpoint text
) WITH (fillfactor = 50);

-- What attempts log, in pieces; `start` counts the bytes of the attempt's log before a piece.
CREATE TABLE duly.log (
    task    uuid    NOT NULL,
    epoch   integer NOT NULL,
    start   bigint  NOT NULL,
    at      bigint  NOT NULL,
    run     integer NOT NULL,
    attempt integer NOT NULL,
    text    text    NOT NULL,
    PRIMARY KEY (task, epoch, start)
);
