-- Events: how they are written, what of them was not received yet, and how they go.
-- `src/postgres/outbox.rs` says why they are read like this.

-- Writes those of a transaction's events that a sink wants; answers whether there are any. The caller holds
-- the locks of all rows that have changed, and has found its kinds of events in duly.wanted_kinds. Events
-- about tasks come as columns; each of `others` is a JSON array, as in duly.outbox. Tasks of the system's
-- own queues have no events.
CREATE OR REPLACE FUNCTION duly.tell(
    at bigint, kinds smallint[], tasks uuid[], lanes integer[], runs integer[], epochs integer[],
    others text[]) RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    most   constant integer := 1000;
    places integer[];
    wanted integer[];
    by_all integer;
    many   integer;
    more   integer;
    target smallint;
BEGIN
    IF cardinality(tasks) > 0 THEN
        SELECT array_agg(p.id), array_agg(p.kinds), bit_and(p.kinds) INTO places, wanted, by_all
        FROM (SELECT u.id, coalesce(CASE WHEN lower(left(n.queue, 5)) <> 'duly.' THEN
                         (SELECT bit_or(w.kinds) FROM duly.wanted w
                          WHERE w.tenant IN (n.tenant, '') AND w.queue IN (n.queue, '')
                            AND w.type IN (n.type, '')) END, 0) AS kinds
              FROM (SELECT DISTINCT a.id FROM unnest(lanes) a(id)) u
              JOIN duly.lane n ON n.id = u.id ORDER BY u.id) p;
        IF EXISTS (SELECT FROM (SELECT DISTINCT a.kind FROM unnest(kinds) a(kind)) k
                   WHERE by_all & (1 << k.kind) = 0)
        THEN
            SELECT array_agg(e.kind ORDER BY e.n), array_agg(e.task ORDER BY e.n),
                   array_agg(e.lane ORDER BY e.n), array_agg(e.run ORDER BY e.n),
                   array_agg(e.epoch ORDER BY e.n)
            INTO kinds, tasks, lanes, runs, epochs
            FROM unnest(kinds, tasks, lanes, runs, epochs) WITH ORDINALITY
                 e(kind, task, lane, run, epoch, n)
            WHERE wanted[width_bucket(e.lane, places)] & (1 << e.kind) <> 0;
        END IF;
    END IF;
    IF cardinality(others) > 0 THEN
        others := ARRAY(
            SELECT o.event FROM unnest(others) WITH ORDINALITY o(event, n)
            WHERE EXISTS (
                SELECT FROM duly.wanted w
                WHERE w.tenant IN (coalesce(o.event::json ->> 1, ''), '')
                  AND w.kinds & (1 << (o.event::json ->> 0)::integer) <> 0
                  AND w.queue IN (coalesce(o.event::json ->> 2, ''), '') AND w.type = '')
            ORDER BY o.n);
    END IF;
    many := coalesce(cardinality(tasks), 0);
    more := coalesce(cardinality(others), 0);
    IF many + more = 0 THEN
        RETURN false;
    END IF;
    target := coalesce((SELECT h.segment FROM duly.outbox_head h), 0);
    IF many + more <= most THEN
        INSERT INTO duly.outbox (at, segment, kinds, tasks, lanes, runs, epochs, others)
        VALUES (at, target, kinds, tasks, lanes, runs, epochs, nullif(others, '{}'));
        RETURN true;
    END IF;
    FOR start IN 1 .. many BY most LOOP
        INSERT INTO duly.outbox (at, segment, kinds, tasks, lanes, runs, epochs)
        VALUES (at, target, kinds[start:start + most - 1], tasks[start:start + most - 1],
                lanes[start:start + most - 1], runs[start:start + most - 1],
                epochs[start:start + most - 1]);
    END LOOP;
    FOR start IN 1 .. more BY most LOOP
        INSERT INTO duly.outbox (at, segment, others)
        VALUES (at, target, others[start:start + most - 1]);
    END LOOP;
    RETURN true;
END
$$;

-- Part of hook `stored`: tells of new tasks, and of those that were handed off.
CREATE OR REPLACE FUNCTION duly.tell_of_new(
    ids uuid[], lanes integer[], handed boolean[], at bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    many constant integer[] := ARRAY[cardinality(ids)];
    held record;
BEGIN
    SELECT coalesce(array_agg(u.id), '{}') AS ids, coalesce(array_agg(u.lane), '{}') AS lanes,
           count(*)::integer AS many
    INTO held
    FROM unnest(ids, lanes, handed) u(id, lane, handed) WHERE u.handed;
    RETURN duly.tell(
        at, array_fill(0::smallint, many) || array_fill(2::smallint, ARRAY[held.many]), ids || held.ids,
        lanes || held.lanes, array_fill(1, many) || array_fill(1, ARRAY[held.many]),
        array_fill(0, many) || array_fill(1, ARRAY[held.many]), NULL);
END
$$;

-- A number below that of every row of a transaction that a later snapshot does not know of. Such a
-- transaction gets its id after the one that this call takes and that ends with it, so the call is a
-- transaction of its own. The margin is what a crash of the server may set the sequence back by.
CREATE OR REPLACE FUNCTION duly.event_low() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    low constant bigint := (SELECT s.last_value FROM duly.event_number s);
BEGIN
    PERFORM pg_current_xact_id();
    RETURN greatest(low - 64, 0);
END
$$;

-- Rows behind a position, at most so many, in segments among these. See duly.sink for the arguments. What
-- is left of the step is found by its numbers above `low` and, below, by the transactions that `seen` knew as
-- open; what is beyond it, likewise from `next_seen`. The conditions leave the planner one index for each.
CREATE OR REPLACE FUNCTION duly.unseen_events(
    in_seen pg_snapshot, in_low bigint, in_next_seen pg_snapshot, in_next_low bigint,
    in_next_high bigint, in_number bigint, in_index integer, in_segments smallint[], most bigint)
RETURNS TABLE (number bigint, at bigint) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    -- A row that was received in part is behind the position.
    above  constant bigint := in_number - (in_index > 0)::integer;
    beyond constant pg_snapshot := coalesce(in_next_seen, in_seen);
    lowest constant bigint := coalesce(in_next_low, in_low);
    rows   bigint := 0;
BEGIN
    RETURN QUERY
    SELECT o.number, o.at
    FROM pg_snapshot_xip(beyond) x(id), LATERAL (
        SELECT r.number, r.at FROM duly.outbox r
        WHERE r.made_in >= x.id AND r.made_in <= x.id AND r.number <= lowest
          AND r.segment = ANY (in_segments)
        ORDER BY r.made_in, r.number LIMIT most) o
    LIMIT most;
    GET DIAGNOSTICS rows = ROW_COUNT;
    RETURN QUERY
    SELECT r.number, r.at FROM duly.outbox r
    WHERE r.number > lowest AND NOT pg_visible_in_snapshot(r.made_in, beyond)
      AND r.segment = ANY (in_segments)
    ORDER BY r.number LIMIT most - rows;
    IF in_next_seen IS NULL OR rows >= most THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT o.number, o.at
    FROM pg_snapshot_xip(in_seen) x(id), LATERAL (
        SELECT r.number, r.at FROM duly.outbox r
        WHERE r.made_in >= x.id AND r.made_in <= x.id AND r.number > above AND r.number <= in_low
          AND pg_visible_in_snapshot(r.made_in, in_next_seen) AND r.segment = ANY (in_segments)
        ORDER BY r.made_in, r.number LIMIT most) o
    LIMIT most;
    RETURN QUERY
    SELECT r.number, r.at FROM duly.outbox r
    WHERE r.number > greatest(in_low, above) AND r.number <= in_next_high
      AND NOT pg_visible_in_snapshot(r.made_in, in_seen)
      AND pg_visible_in_snapshot(r.made_in, in_next_seen) AND r.segment = ANY (in_segments)
    ORDER BY r.number LIMIT most;
END
$$;

-- Empties a segment if every sink has received all of it, and another one is written to; answers how many
-- rows it had, or NULL. While the lock is held nobody writes to the segment, and whoever has written to it
-- has ended: so what this finds counts. A statement that began before finds an empty segment, which no
-- snapshot keeps: readers look at their position again once they have read. Runs with the rights of the
-- owner of the tables, so that a node need not own them.
CREATE OR REPLACE FUNCTION duly.empty_segment(which smallint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
    name constant text := format('duly.%I', 'outbox_' || which);
    rows bigint;
BEGIN
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', name);
    IF which = coalesce((SELECT h.segment FROM duly.outbox_head h), 0)
       OR EXISTS (
           SELECT FROM duly.sink s, LATERAL duly.unseen_events(
               s.seen, s.low, s.next_seen, s.next_low, s.next_high, s.number, s.index, ARRAY[which], 1)
           WHERE s.suspended_at IS NULL)
    THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT count(*) FROM ONLY %s', name) INTO rows;
    EXECUTE format('TRUNCATE ONLY %s', name);
    RETURN rows;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END
$$;

-- Makes events and sinks readable that a copy of the database has brought from a server which was further on:
-- there, transactions had higher ids, and a position says of those to come here that it knows them. All
-- stored events become those of this transaction, and these sinks receive them again. `before` is a
-- snapshot that was taken before. Runs with the rights of the owner of the tables, as duly.empty_segment.
CREATE OR REPLACE FUNCTION duly.adopt_events(before pg_snapshot) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present constant xid8 := pg_snapshot_xmax(before);
BEGIN
    UPDATE duly.outbox o SET made_in = pg_current_xact_id() WHERE o.made_in >= present;
    UPDATE duly.sink s
    SET seen = before, low = 0, high = 0, number = 0, index = 0, next_seen = NULL, next_low = NULL,
        next_high = NULL, next_at = NULL
    WHERE pg_snapshot_xmax(coalesce(s.next_seen, s.seen)) > present;
    DELETE FROM duly.event_mark m WHERE pg_snapshot_xmax(m.seen) > present;
END
$$;
