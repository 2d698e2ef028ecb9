-- Schedules, and the slots that they have fired.

CREATE TABLE duly.schedule (
    id         uuid     NOT NULL PRIMARY KEY,
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    -- 0 ACTIVE, 1 PAUSED.
    status     smallint NOT NULL,
    generation integer  NOT NULL,
    -- Rises with every change of any schedule. Changes are made one after the other, so that a change with
    -- a higher version is never seen before one with a lower.
    version    bigint   NOT NULL,
    managed    boolean  NOT NULL,
    created_at bigint   NOT NULL,
    updated_at bigint   NOT NULL,
    labels     text,
    note       text,
    -- Texts of the engine's.
    rule       text     NOT NULL,
    template   text     NOT NULL
);

CREATE UNIQUE INDEX schedule_by_name ON duly.schedule (tenant, name);
CREATE UNIQUE INDEX schedule_by_version ON duly.schedule (version);

-- The highest version that was ever given, also to a schedule that is gone, and how many there are.
CREATE TABLE duly.schedule_version (
    id        integer NOT NULL PRIMARY KEY CHECK (id = 1),
    version   bigint  NOT NULL,
    schedules integer NOT NULL
) WITH (fillfactor = 50);

-- What moves with every slot, apart from the texts. `last` is what was started last: of kind 1 a task,
-- of kind 2 a workflow. Who decides slots, or changes their schedule, holds its row.
CREATE TABLE duly.schedule_position (
    schedule  uuid     NOT NULL PRIMARY KEY,
    position  bigint   NOT NULL,
    last_kind smallint,
    last      uuid
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The last slots of each schedule. `kind`: 0 skipped, 1 a task, 2 a workflow. `run` is what was started,
-- `reason` why it was skipped.
CREATE TABLE duly.slot (
    schedule uuid     NOT NULL,
    slot     bigint   NOT NULL,
    kind     smallint NOT NULL,
    run      uuid,
    reason   text,
    PRIMARY KEY (schedule, slot)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
