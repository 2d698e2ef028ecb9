-- Pick: selects candidates for a grant from duly.due and locks their rows. It leases nothing: that is
-- duly.grant_tasks, which checks each candidate, so that candidates may come from another source.

-- The first `wanted` due rows of these ranges in the order of claims, and the index of the range of each.
-- At first it reads a few rows of each range, whether they are due or not. If a range may have more of
-- them before the last one that is wanted, it reads again, and no further than that one. `starts` is
-- where each range starts without those rows, unless that needs another read.
CREATE OR REPLACE FUNCTION duly.first_due(
    in_lanes integer[], in_ranks smallint[], since bigint[], at bigint, wanted integer,
    ageing bigint, OUT rows tid[], OUT numbers bigint[], OUT starts bigint[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    nowhere constant bigint := 9223372036854775807;
    piece   integer := least(wanted, greatest(2, 2 * wanted / cardinality(in_lanes)));
    edge    bigint  := nowhere;
    last    bigint;
    sure    boolean;
BEGIN
    LOOP
        WITH seen AS MATERIALIZED (
            SELECT r.n, d.row, d.run_at, d.run_at + r.rank % 10 * ageing AS turn, d.task
            FROM unnest(in_lanes, in_ranks, since) WITH ORDINALITY r(lane, rank, since, n)
            LEFT JOIN LATERAL (
                SELECT w.ctid AS row, w.run_at, w.task FROM duly.due w
                WHERE w.lane = r.lane AND w.rank = r.rank AND w.run_at >= r.since
                  AND w.run_at <= edge - r.rank % 10 * ageing
                ORDER BY w.run_at, w.task LIMIT piece) d ON true
        ), first AS MATERIALIZED (
            SELECT s.n, s.row, s.turn, s.task FROM seen s WHERE s.run_at <= at
            ORDER BY s.turn, s.task LIMIT wanted
        ), final AS (
            SELECT f.turn, f.task FROM first f ORDER BY f.turn DESC, f.task DESC LIMIT 1
        ), range AS (
            SELECT s.n, count(s.row) = piece AS is_cut,
                   min(s.run_at) FILTER (
                       WHERE s.run_at > at OR (s.turn, s.task) > (l.turn, l.task)) AS start
            FROM seen s LEFT JOIN final l ON true GROUP BY s.n ORDER BY s.n
        )
        SELECT f.rows, f.numbers, f.last, r.sure, r.starts INTO rows, numbers, last, sure, starts
        FROM (SELECT array_agg(f.row) AS rows, array_agg(f.n) AS numbers, max(f.turn) AS last
              FROM first f) f,
             -- Rows that were cut off come after a row that is not wanted.
             (SELECT bool_and(r.start IS NOT NULL OR NOT r.is_cut) AS sure,
                     array_agg(r.start) AS starts FROM range r) r;
        EXIT WHEN sure OR piece >= wanted;
        IF cardinality(rows) < wanted THEN
            piece := least(wanted, 4 * piece);
        ELSE
            piece := wanted;
            edge := last;
        END IF;
    END LOOP;
    IF NOT sure OR edge < nowhere THEN
        starts := NULL;
    END IF;
END
$$;

-- The first due rows of some ranges that no other claim is about to take, and where the ranges start
-- without them, if that is known.
CREATE OR REPLACE FUNCTION duly.pick(
    in_lanes integer[], in_ranks smallint[], since bigint[], at bigint, wanted integer,
    ageing bigint, OUT rows tid[], OUT tasks uuid[], OUT starts bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    chosen  tid[];
    numbers bigint[];
    shares  bigint[] := ARRAY[wanted];
BEGIN
    IF cardinality(in_lanes) > 1 THEN
        SELECT f.rows, f.numbers, f.starts INTO chosen, numbers, starts
        FROM duly.first_due(in_lanes, in_ranks, since, at, wanted, ageing) f;
        SELECT array_agg(d.ctid), array_agg(d.task) INTO rows, tasks
        FROM (SELECT w.ctid, w.task FROM duly.due w WHERE w.ctid = ANY (chosen)
              FOR UPDATE SKIP LOCKED) d;
        IF cardinality(rows) IS DISTINCT FROM cardinality(chosen) THEN
            starts := NULL;
        END IF;
        IF 2 * cardinality(rows) >= cardinality(chosen) OR chosen IS NULL THEN
            RETURN;
        END IF;
        -- Other claims take these. The next rows of the same ranges are as good.
        shares := ARRAY(SELECT count(c.n) FROM generate_series(1, cardinality(in_lanes)) r(n)
                        LEFT JOIN unnest(numbers) c(n) ON c.n = r.n GROUP BY r.n ORDER BY r.n);
    END IF;
    SELECT array_agg(d.ctid), array_agg(d.task) INTO rows, tasks
    FROM (SELECT * FROM unnest(in_lanes, in_ranks, since, shares) u(lane, rank, since, share)
          WHERE u.share > 0) r,
         LATERAL (SELECT w.ctid, w.task FROM duly.due w
                  WHERE w.lane = r.lane AND w.rank = r.rank
                    AND w.run_at >= r.since AND w.run_at <= at
                  ORDER BY w.run_at, w.task LIMIT r.share
                  FOR UPDATE SKIP LOCKED) d;
END
$$;

-- The same if quarantined tasks (rank 10 and up) are among them. A quarantined task is granted alone, to
-- a session that is idle. A busy session stops before it and waits for it until it is idle, unless
-- another session does so already.
CREATE OR REPLACE FUNCTION duly.pick_with_quarantine(
    who uuid, in_lanes integer[], in_ranks smallint[], since bigint[], wanted integer, at bigint,
    ageing bigint, idle boolean,
    OUT rows tid[], OUT tasks uuid[], OUT waits uuid, OUT is_alone boolean)
LANGUAGE plpgsql AS $$
DECLARE
    candidate record;
    passed    integer;
    chosen    tid[];
BEGIN
    is_alone := false;
    SELECT count(*) INTO passed
    FROM duly.session WHERE waits_for IS NOT NULL AND ended_at IS NULL;
    SELECT f.rows INTO chosen
    FROM duly.first_due(in_lanes, in_ranks, since, at, wanted + passed, ageing) f;
    FOR candidate IN
        SELECT d.ctid, d.task, d.rank >= 10 AS quarantined
        FROM (SELECT w.ctid, w.* FROM duly.due w WHERE w.ctid = ANY (chosen)
              FOR UPDATE SKIP LOCKED) d
        ORDER BY d.run_at + d.rank % 10 * ageing, d.task
    LOOP
        EXIT WHEN cardinality(tasks) >= wanted;
        IF candidate.quarantined AND NOT (idle AND tasks IS NULL) THEN
            CONTINUE WHEN EXISTS (
                SELECT FROM duly.session s
                WHERE s.waits_for = candidate.task AND s.id <> who AND s.ended_at IS NULL
                  AND duly.holds(s.id));
            waits := candidate.task;
            EXIT;
        END IF;
        rows := rows || candidate.ctid;
        tasks := tasks || candidate.task;
        is_alone := candidate.quarantined;
        EXIT WHEN is_alone;
    END LOOP;
END
$$;

-- Those of the picked candidates whose payloads fit into `byte_limit` together, in the order of claims;
-- the first one always fits. `is_cut` says that some do not.
CREATE OR REPLACE FUNCTION duly.fit_in_bytes(
    picked_rows tid[], picked uuid[], byte_limit bigint, ageing bigint,
    OUT rows tid[], OUT tasks uuid[], OUT is_cut boolean)
LANGUAGE plpgsql AS $$
DECLARE
    sorted  constant uuid[] := ARRAY(SELECT p.id FROM unnest(picked) p(id) ORDER BY p.id);
    lowest  constant uuid   := sorted[1];
    highest constant uuid   := sorted[cardinality(sorted)];
BEGIN
    PERFORM duly.plan_for(sorted);
    is_cut := coalesce(byte_limit < (
        SELECT sum(octet_length(t.payload)) FROM duly.task t
        WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest), false);
    IF NOT is_cut THEN
        rows := picked_rows;
        tasks := picked;
        RETURN;
    END IF;
    SELECT array_agg(b.row), array_agg(b.id) INTO rows, tasks
    FROM (SELECT picked_rows[array_position(picked, t.id)] AS row, t.id,
                 sum(octet_length(t.payload)) OVER (ORDER BY t.run_at + t.rank % 10 * ageing, t.id)
                     AS bytes,
                 row_number() OVER (ORDER BY t.run_at + t.rank % 10 * ageing, t.id) AS n
          FROM duly.task t
          WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest) b
    WHERE b.bytes <= byte_limit OR b.n = 1;
END
$$;
