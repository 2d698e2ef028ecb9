-- `status`: 0 active, 1 paused. `rule` and `template` are texts of the engine's. `version` rises with
-- every change of any schedule.
CREATE TABLE schedule (
    id         BLOB    NOT NULL PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    status     INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    managed    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    labels     TEXT,
    note       TEXT,
    rule       TEXT    NOT NULL,
    template   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX schedule_by_name ON schedule (tenant, name);
CREATE UNIQUE INDEX schedule_by_version ON schedule (version);

-- The highest version that was ever given, also to a schedule that is gone, and how many there are.
CREATE TABLE schedule_version (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    version   INTEGER NOT NULL,
    schedules INTEGER NOT NULL
) STRICT;

-- What moves with every slot, apart from the texts. `last` is what was started last: of kind 1 a task,
-- of kind 2 a workflow.
CREATE TABLE schedule_position (
    schedule  BLOB    NOT NULL PRIMARY KEY,
    position  INTEGER NOT NULL,
    last_kind INTEGER,
    last      BLOB
) STRICT, WITHOUT ROWID;

-- The last slots of each schedule. `kind`: 0 skipped, 1 a task, 2 a workflow. `run` is what was started,
-- `reason` why it was skipped.
CREATE TABLE slot (
    schedule BLOB    NOT NULL,
    slot     INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    run      BLOB,
    reason   TEXT,
    PRIMARY KEY (schedule, slot)
) STRICT, WITHOUT ROWID;
