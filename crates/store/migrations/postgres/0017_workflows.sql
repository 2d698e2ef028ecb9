-- Dependencies between tasks, and workflows.

ALTER TABLE duly.task
    -- NULL unless something ties the task to others. Bit 1: it has parents. Bit 2: its payload is
    -- rendered. The rest counts its children, in steps of 4, and may count some that are gone.
    ADD COLUMN links    integer,
    ADD COLUMN workflow uuid;

-- `condition` is how the parent must end: 0 SUCCESS, 1 FAILED, 2 any end. `state` is 0 until the parent
-- has ended, then 1 if it ended so, and 2 if it did not.
CREATE TABLE duly.edge (
    parent    uuid     NOT NULL,
    child     uuid     NOT NULL,
    condition smallint NOT NULL,
    state     smallint NOT NULL,
    PRIMARY KEY (parent, child)
) WITH (fillfactor = 70);

CREATE INDEX edge_child ON duly.edge (child);

-- A row exists exactly while its task is BLOCKED.
CREATE TABLE duly.blocked (
    task     uuid    NOT NULL,
    lane     integer NOT NULL,
    -- Edges to the task whose state is not 1.
    open     integer NOT NULL,
    -- How long the task waits once it is released; NULL if it has a run time.
    delay_ms bigint,
    PRIMARY KEY (lane, task)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0);

-- BLOCKED tasks with an edge whose state is 2, for the cascade, which cancels them. Most of the time the
-- table is empty.
CREATE TABLE duly.doomed (
    child uuid NOT NULL PRIMARY KEY
);

CREATE TABLE duly.workflow (
    id          uuid     NOT NULL PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    created_at  bigint   NOT NULL,
    finished_at bigint,
    -- Tasks that have not ended.
    open        integer  NOT NULL,
    -- 0 RUNNING, 1 SUCCESS, 2 FAILED, 3 CANCELLED.
    status      smallint NOT NULL DEFAULT 0,
    fail_fast   boolean  NOT NULL,
    -- Whether it fails fast and a failure was not handled.
    failing     boolean  NOT NULL DEFAULT false,
    -- Whether the cascade has to look for tasks to cancel.
    sweep       boolean  NOT NULL DEFAULT false,
    -- Why it was cancelled, if it was.
    cancelled   text,
    name        text     NOT NULL,
    labels      text
) WITH (fillfactor = 50);

CREATE INDEX workflow_tenant ON duly.workflow (tenant, id);
CREATE INDEX workflow_sweep ON duly.workflow (id) WHERE sweep;

CREATE TABLE duly.member (
    workflow uuid NOT NULL,
    task     uuid NOT NULL,
    key      text NOT NULL,
    PRIMARY KEY (workflow, task)
);
