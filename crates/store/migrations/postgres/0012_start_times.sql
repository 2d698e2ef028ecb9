-- When handlers start. A worker tells with the outcome how long its handler ran, so that no write is
-- spent on the start.

-- While a task is RUNNING: when its lease is overdue, if that was moved. Once its run has ended: when
-- the handler of its last attempt started, if that is known. One column for both keeps the payload last
-- in the row, and so out of the log of every update; only a column before it can do that.
ALTER TABLE duly.task RENAME COLUMN extended_to TO deadline_or_start;

DROP FUNCTION duly.exchange;
DROP FUNCTION duly.succeed;

-- Commits successes of a session, whose ids come sorted. Mostly all of them are first grants. A
-- result is found by its place among the ids: a join would be planned anew for every size of every
-- day, and sometimes as a scan. The ids stand in a record and the results in a variable, since the
-- former are searched as they lie and the latter are reached by number. `ran` tells how many
-- milliseconds each handler ran, if its worker says so.
CREATE FUNCTION duly.succeed(
    who uuid, ended uuid[], epochs integer[], results text[], ran integer[], at bigint,
    OUT done uuid[], OUT sequences bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    same  record;
    texts text[];
    times integer[];
    part  record;
BEGIN
    FOR same IN
        SELECT epochs[1] AS epoch, ended AS ids, results AS results, ran AS ran
        WHERE epochs[1] = ALL (epochs)
        UNION ALL
        SELECT e.epoch, array_agg(e.id ORDER BY e.id), array_agg(e.result ORDER BY e.id),
               array_agg(e.ran ORDER BY e.id)
        FROM unnest(ended, epochs, results, ran) e(id, epoch, result, ran)
        WHERE NOT epochs[1] = ALL (epochs) GROUP BY e.epoch
    LOOP
        PERFORM duly.plan_for(same.ids);
        texts := same.results;
        times := same.ran;
        WITH finished AS (
            UPDATE duly.task t
            SET status = 3, finished_at = at, charged = t.charged + 1, error = NULL,
                result = texts[width_bucket(t.id, same.ids)],
                deadline_or_start = CASE WHEN times[width_bucket(t.id, same.ids)] IS NOT NULL THEN
                    greatest(t.granted_at, at - times[width_bucket(t.id, same.ids)]) END
            WHERE t.id = ANY (same.ids)
              AND t.id BETWEEN same.ids[1] AND same.ids[cardinality(same.ids)]
              AND t.epoch = same.epoch AND t.session = who
              AND t.status = 2
            RETURNING t.id, t.sequence)
        SELECT array_agg(f.id) AS ids, array_agg(f.sequence) AS sequences INTO part FROM finished f;
        done := done || part.ids;
        sequences := sequences || part.sequences;
    END LOOP;
END
$$;

-- Commits successes of a session and grants it what is due in these ranges, in one go. `asked` is the
-- number of its claim; without one nothing is granted. `done` names the successes that were
-- committed, `heads` tells where each of the ranges starts now. Who is not careful fails with DU001
-- where a payload is so large that the batch could exceed `byte_limit`: to look at all the payloads
-- first costs a tenth of a claim, and mostly they are small. `heavy` tells whether there was one.
CREATE FUNCTION duly.exchange(
    who uuid, ended uuid[], ended_epochs integer[], results text[], ran integer[], asked bigint,
    wanted integer, in_lanes integer[], in_ranks smallint[], since bigint[], byte_limit bigint, ageing bigint,
    default_timeout integer, slack integer, careful boolean,
    OUT at bigint, OUT done uuid[], OUT is_open boolean, OUT held boolean, OUT picky boolean,
    OUT echo boolean, OUT paused_tenants text[], OUT paused_queues text[], OUT heads bigint[],
    OUT tasks uuid[], OUT epochs integer[], OUT runs integer[], OUT charges integer[],
    OUT retries integer[], OUT timeouts integer[], OUT lanes integer[], OUT run_ats bigint[],
    OUT granted_ats bigint[], OUT payloads text[], OUT heavy boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    s         record;
    latest    bigint;
    o_lanes   integer[] := in_lanes;
    o_ranks   smallint[] := in_ranks;
    o_since   bigint[] := since;
    batch     record;
    sequences bigint[];
    rows      tid[];
    picked    uuid[];
    sorted    uuid[];
    lowest    uuid;
    highest   uuid;
    waits     uuid;
    is_alone  boolean;
    -- Payloads of this size always fit.
    small     bigint := byte_limit / greatest(wanted, 1);
BEGIN
    at := duly.now();
    echo := false;
    IF asked IS NULL THEN
        SELECT newest, alone, waits_for INTO s
        FROM duly.session WHERE id = who AND ended_at IS NULL;
    ELSE
        SELECT newest, alone, waits_for INTO s
        FROM duly.session WHERE id = who AND ended_at IS NULL FOR NO KEY UPDATE;
    END IF;
    is_open := FOUND;
    IF cardinality(ended) > 0 THEN
        SELECT f.done, f.sequences INTO done, sequences
        FROM duly.succeed(who, ended, ended_epochs, results, ran, at) f;
        IF coalesce(cardinality(done), 0) < cardinality(ended) THEN
            sequences := sequences || duly.hear(who, ended, ended_epochs);
        END IF;
        PERFORM duly.end_leases(array_agg(who), array_agg(n.sequence), array_agg(n.ended), true)
        FROM (SELECT q.sequence, count(*)::integer AS ended FROM unnest(sequences) q(sequence)
              GROUP BY 1 ORDER BY 1) n;
    END IF;
    SELECT array_agg(p.tenant), array_agg(p.queue) INTO paused_tenants, paused_queues
    FROM duly.pause p;
    IF NOT is_open THEN
        RETURN;
    END IF;
    picky := s.alone OR s.waits_for IS NOT NULL;
    -- Nobody asks, unless there are suspects.
    IF picky OR 10 <= ANY (in_ranks) THEN
        held := duly.holds(who);
    END IF;
    IF asked IS NULL THEN
        RETURN;
    END IF;
    latest := duly.newest(who, s.newest);
    IF NOT duly.admits(who, latest, asked) THEN
        echo := true;
        UPDATE duly.grant_log g SET served_at = at WHERE g.session = who AND g.sequence = asked
        RETURNING g.tasks INTO batch;
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
        SELECT array_agg(t.id), array_agg(t.epoch), array_agg(t.run), array_agg(t.charged),
               array_agg(t.retries), array_agg(t.timeout_ms), array_agg(t.lane),
               array_agg(t.run_at), array_agg(t.granted_at), array_agg(t.payload)
        INTO tasks, epochs, runs, charges, retries, timeouts, lanes, run_ats, granted_ats, payloads
        FROM (SELECT t.* FROM duly.task t
              WHERE t.id = ANY (batch.tasks) AND t.session = who AND t.sequence = asked
                AND t.status = 2
              ORDER BY array_position(batch.tasks, t.id)) t;
        RETURN;
    END IF;
    is_alone := s.alone AND held;
    IF paused_tenants IS NOT NULL THEN
        SELECT array_agg(r.lane), array_agg(r.rank), array_agg(r.since)
        INTO o_lanes, o_ranks, o_since
        FROM unnest(in_lanes, in_ranks, since) r(lane, rank, since)
        WHERE NOT EXISTS (
            SELECT FROM duly.lane n JOIN duly.pause p ON p.tenant = n.tenant AND p.queue = n.queue
            WHERE n.id = r.lane);
    END IF;
    IF wanted > 0 AND NOT is_alone AND cardinality(o_lanes) > 0 THEN
        IF 10 <= ANY (o_ranks) THEN
            SELECT p.rows, p.tasks, p.waits, p.is_alone INTO rows, picked, waits, is_alone
            FROM duly.pick_warily(who, o_lanes, o_ranks, o_since, wanted, at, ageing, NOT held) p;
        ELSE
            SELECT p.rows, p.tasks, p.starts INTO rows, picked, heads
            FROM duly.pick(o_lanes, o_ranks, o_since, at, wanted, ageing) p;
        END IF;
        IF paused_tenants IS NOT NULL THEN
            heads := NULL;
        END IF;
    END IF;
    IF picked IS NOT NULL THEN
        sorted := ARRAY(SELECT p.id FROM unnest(picked) p(id) ORDER BY p.id);
        PERFORM duly.plan_for(sorted);
        lowest := sorted[1];
        highest := sorted[cardinality(sorted)];
    END IF;
    IF careful AND picked IS NOT NULL AND byte_limit < (
        SELECT sum(octet_length(t.payload)) FROM duly.task t
        WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest)
    THEN
        SELECT array_agg(b.row), array_agg(b.id) INTO rows, picked
        FROM (SELECT rows[array_position(picked, t.id)] AS row, t.id,
                     sum(octet_length(t.payload)) OVER (ORDER BY t.run_at + t.rank % 10 * ageing, t.id)
                         AS bytes,
                     row_number() OVER (ORDER BY t.run_at + t.rank % 10 * ageing, t.id) AS n
              FROM duly.task t
              WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest) b
        WHERE b.bytes <= byte_limit OR b.n = 1;
        heads := NULL;
        sorted := ARRAY(SELECT p.id FROM unnest(picked) p(id) ORDER BY p.id);
    END IF;
    IF picked IS NOT NULL THEN
        DELETE FROM duly.due d WHERE d.ctid = ANY (rows);
        WITH granted AS (
            UPDATE duly.task t
            SET status = 2, epoch = t.epoch + 1, session = who, sequence = asked, granted_at = at,
                deadline_or_start = NULL
            WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest
              AND t.status = 1 AND t.run_at <= at
            RETURNING t.id, t.epoch, t.run, t.charged, t.retries, t.timeout_ms, t.lane, t.run_at,
                      t.rank, t.payload)
        SELECT array_agg(t.id), array_agg(t.epoch), array_agg(t.run), array_agg(t.charged),
               array_agg(t.retries), array_agg(t.timeout_ms), array_agg(t.lane),
               array_agg(t.run_at), array_agg(at),
               array_agg(CASE WHEN careful OR octet_length(t.payload) <= small THEN t.payload END),
               coalesce(bool_or(octet_length(t.payload) > small), false)
        INTO tasks, epochs, runs, charges, retries, timeouts, lanes, run_ats, granted_ats, payloads,
             heavy
        FROM (SELECT * FROM granted g ORDER BY g.run_at + g.rank % 10 * ageing, g.id) t;
        IF heavy AND NOT careful THEN
            RAISE EXCEPTION 'the payloads could be too large for one batch' USING ERRCODE = 'DU001';
        END IF;
    END IF;
    is_alone := is_alone AND (held OR tasks IS NOT NULL);
    picky := is_alone OR waits IS NOT NULL;
    -- A batch tells by itself which claim it came with.
    IF (s.alone, s.waits_for) IS DISTINCT FROM (is_alone, waits) OR tasks IS NULL AND latest < asked THEN
        UPDATE duly.session SET newest = asked, alone = is_alone, waits_for = waits WHERE id = who;
    END IF;
    IF latest < asked THEN
        PERFORM duly.forget_before(who, asked);
    END IF;
    IF tasks IS NOT NULL THEN
        held := true;
        INSERT INTO duly.grant_log AS g (session, sequence, granted_at, served_at, deadline, live,
                                         received, tasks, epochs)
        VALUES (who, asked, at, at,
                at + slack + (SELECT min(coalesce(u.ms, default_timeout)) FROM unnest(timeouts) u(ms)),
                cardinality(tasks), false, tasks, epochs)
        ON CONFLICT (session, sequence) DO UPDATE
        SET granted_at = at, served_at = at, deadline = excluded.deadline, live = excluded.live,
            received = false, tasks = excluded.tasks, epochs = excluded.epochs;
    END IF;
    IF heads IS NULL THEN
        heads := ARRAY(
            SELECT (SELECT d.run_at FROM duly.due d
                    WHERE d.lane = r.lane AND d.rank = r.rank AND d.run_at >= r.since
                    ORDER BY d.run_at LIMIT 1)
            FROM unnest(in_lanes, in_ranks, since) WITH ORDINALITY r(lane, rank, since, n)
            ORDER BY r.n);
    END IF;
END
$$;
