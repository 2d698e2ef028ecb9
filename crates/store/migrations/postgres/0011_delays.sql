-- Delays count from the server's clock. A node only estimates it, and an estimate that is behind would
-- start tasks early.

-- Stores new tasks, whose ids come sorted. The first `room` of those that are due and alone in one of
-- the lanes `servable` are granted at once, under claim `asked` of session `who`; `turns` is the order
-- in which they were submitted. A task with a delay is due that long after this server's time of now,
-- whatever the node believed the time to be; one without is due at its `run_ats`. A caller that runs on
-- this server may say by `read_at` what its clock showed.
CREATE FUNCTION duly.submit_tasks(
    ids uuid[], turns integer[], run_ats bigint[], delays bigint[], lanes integer[],
    ranks smallint[], retries integer[], timeouts integer[], back_offs text[], labels text[],
    payloads text[], who uuid, asked bigint, room integer, servable integer[], since bigint,
    default_timeout integer, slack integer, read_at bigint, OUT at bigint, OUT handed boolean[])
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    s    record;
    free integer[];
    dues bigint[];
BEGIN
    at := coalesce(read_at, duly.now());
    dues := ARRAY(SELECT coalesce(at + u.delay, u.run_at)
                  FROM unnest(run_ats, delays) WITH ORDINALITY u(run_at, delay, n) ORDER BY u.n);
    IF duly.day_of(ids[1]) < at / 86400000 THEN
        PERFORM duly.keep_days(ids);
    END IF;
    IF room > 0 THEN
        SELECT newest, alone, alone OR waits_for IS NOT NULL AS picky INTO s
        FROM duly.session WHERE id = who AND ended_at IS NULL FOR NO KEY UPDATE;
        IF NOT FOUND OR NOT duly.admits(who, duly.newest(who, s.newest), asked)
           OR s.picky AND duly.holds(who)
        THEN
            room := 0;
        END IF;
    END IF;
    IF room > 0 THEN
        free := duly.drained(servable, since, at);
        SELECT array_agg(t.fits AND t.place <= room ORDER BY t.n) INTO handed
        FROM (SELECT f.n, f.fits, count(*) FILTER (WHERE f.fits) OVER (ORDER BY f.turn) AS place
              FROM (SELECT u.n, u.turn, u.run_at <= at AND u.lane = ANY (free) AS fits
                    FROM unnest(turns, dues, lanes)
                         WITH ORDINALITY u(turn, run_at, lane, n)) f) t;
    END IF;
    -- Columns are reached by number: to unnest eleven of them costs a tenth of a submit.
    INSERT INTO duly.task (id, run_at, created_at, granted_at, session, sequence, epoch, lane, run,
                           charged, retries, losses, timeout_ms, status, rank, back_off, labels,
                           payload)
    SELECT ids[n], dues[n], at,
           CASE WHEN handed[n] THEN at END, CASE WHEN handed[n] THEN who END,
           CASE WHEN handed[n] THEN asked END, CASE WHEN handed[n] THEN 1 ELSE 0 END,
           lanes[n], 1, 0, retries[n], 0, timeouts[n],
           CASE WHEN handed[n] THEN 2 ELSE 1 END, ranks[n], back_offs[n], labels[n], payloads[n]
    FROM generate_series(1, cardinality(ids)) n;
    INSERT INTO duly.due (lane, rank, run_at, task)
    SELECT lanes[n], ranks[n], dues[n], ids[n]
    FROM generate_series(1, cardinality(ids)) n
    WHERE handed[n] IS NOT TRUE;
    IF true = ANY (handed) THEN
        INSERT INTO duly.grant_log AS g (session, sequence, granted_at, served_at, deadline, live,
                                         received, tasks, epochs)
        SELECT who, asked, at, at, min(at + coalesce(u.timeout_ms, default_timeout) + slack),
               count(*), false, array_agg(u.id ORDER BY u.turn), array_agg(1)
        FROM unnest(ids, turns, timeouts, handed) u(id, turn, timeout_ms, granted) WHERE u.granted
        ON CONFLICT (session, sequence) DO UPDATE
        SET granted_at = at, served_at = at, deadline = excluded.deadline, live = excluded.live,
            received = false, tasks = excluded.tasks, epochs = excluded.epochs;
        IF s.alone THEN
            UPDATE duly.session SET alone = false WHERE id = who;
        END IF;
        PERFORM duly.forget_before(who, asked);
    END IF;
END
$$;

-- The same for duly.submit, which reads this server's clock itself.
CREATE OR REPLACE FUNCTION duly.submit_batch(
    ids uuid[], turns integer[], run_ats bigint[], created_ats bigint[], lanes integer[],
    ranks smallint[], retries integer[], timeouts integer[], back_offs text[], labels text[],
    payloads text[], who uuid, asked bigint, room integer, servable integer[], since bigint,
    default_timeout integer, slack integer, OUT at bigint, OUT handed boolean[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT s.at, s.handed INTO at, handed
    FROM duly.submit_tasks(ids, turns, run_ats, array_fill(NULL::bigint, ARRAY[cardinality(ids)]),
                           lanes, ranks, retries, timeouts, back_offs, labels, payloads, who, asked,
                           room, servable, since, default_timeout, slack, created_ats[1]) s;
END
$$;
