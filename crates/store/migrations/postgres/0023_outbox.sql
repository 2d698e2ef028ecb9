-- Events, which are written in the transactions of the changes that they tell of, and the sinks that
-- receive them. src/postgres/outbox.rs says how events are read.

-- `subscriptions` is JSON. Where `window_ms` is NULL, `node` serves the sink under `term` until `held_until`.
--
-- The position: what `seen` sees was received. Where `next_seen` is not NULL, so was what that sees, up to
-- the row `number` and in it up to the event `index`, from 1; 0 stands for all of the row. `low` and `high`
-- are numbers of rows: a transaction that the snapshot does not know gets a higher one than `low`, and no
-- row that it sees has a higher one than `high`.
CREATE TABLE duly.sink (
    name             text COLLATE "C" NOT NULL PRIMARY KEY,
    subscriptions    text        NOT NULL,
    window_ms        bigint,
    created_at       bigint      NOT NULL,
    put_at           bigint      NOT NULL,
    seen             pg_snapshot NOT NULL,
    low              bigint      NOT NULL,
    high             bigint      NOT NULL,
    seen_at          bigint      NOT NULL,
    next_seen        pg_snapshot,
    next_low         bigint,
    next_high        bigint,
    next_at          bigint,
    number           bigint      NOT NULL DEFAULT 0,
    index            integer     NOT NULL DEFAULT 0,
    node             uuid,
    term             bigint      NOT NULL DEFAULT 0,
    held_until       bigint      NOT NULL DEFAULT 0,
    suspended_at     bigint,
    suspended_reason text,
    trouble          text
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.05);

-- What sinks subscribe to that are not suspended; bits of kinds. An empty text stands for any.
CREATE TABLE duly.wanted (
    sink   text COLLATE "C" NOT NULL,
    kinds  integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    queue  text COLLATE "C" NOT NULL,
    type   text COLLATE "C" NOT NULL
);

CREATE INDEX wanted_tenant ON duly.wanted (tenant, kinds);
CREATE INDEX wanted_sink ON duly.wanted (sink);

-- All kinds in duly.wanted, in one row or none: what every writer reads.
CREATE TABLE duly.wanted_kinds (
    kinds integer NOT NULL
);

CREATE SEQUENCE duly.event_number;

-- The events of a transaction in one row, or in as few as their limit allows: first those about tasks, then
-- `others`, each of which is a JSON array of kind, tenant, queue, subject and data. A row is written once
-- the transaction holds the locks of what it tells of. Segments are emptied as a whole.
CREATE TABLE duly.outbox (
    number  bigint   NOT NULL DEFAULT nextval('duly.event_number'),
    made_in xid8     NOT NULL DEFAULT pg_current_xact_id(),
    at      bigint   NOT NULL,
    segment smallint NOT NULL,
    kinds   smallint[],
    tasks   uuid[],
    lanes   integer[],
    runs    integer[],
    epochs  integer[],
    others  text[]
) PARTITION BY LIST (segment);

CREATE INDEX outbox_number ON duly.outbox (number);
CREATE INDEX outbox_made_in ON duly.outbox (made_in, number);

-- Not every server is built with lz4.
DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['kinds', 'tasks', 'lanes', 'runs', 'epochs', 'others'] LOOP
        EXECUTE format('ALTER TABLE duly.outbox ALTER COLUMN %I SET COMPRESSION lz4', one);
    END LOOP;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server has no lz4';
END
$$;

-- A row is never changed, and a segment never vacuumed while it fills: soon it is empty again.
DO $$
BEGIN
    FOR one IN 0 .. 3 LOOP
        EXECUTE format('CREATE TABLE duly.outbox_%s PARTITION OF duly.outbox FOR VALUES IN (%s)
                        WITH (autovacuum_vacuum_insert_threshold = -1)', one, one);
    END LOOP;
END
$$;

-- The segment that is written to, in one row or none, which stands for the first.
CREATE TABLE duly.outbox_head (
    id      smallint NOT NULL DEFAULT 1 PRIMARY KEY CHECK (id = 1),
    segment smallint NOT NULL
);

-- What was to be seen at some moments, so that windows can move past what is old.
CREATE TABLE duly.event_mark (
    at   bigint      NOT NULL PRIMARY KEY,
    seen pg_snapshot NOT NULL,
    low  bigint      NOT NULL,
    high bigint      NOT NULL
);
