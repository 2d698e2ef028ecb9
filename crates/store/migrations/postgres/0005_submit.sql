-- Whether a claim may be granted something: it is a new one, or the newest and has nothing to show.
-- What was taken back before its session had heard of it was never granted, for all that the
-- session knows.
CREATE FUNCTION duly.admits(who uuid, newest bigint, asked bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN asked >= newest AND NOT EXISTS (
        SELECT FROM duly.grant_log g
        WHERE g.session = who AND g.sequence = asked AND (g.received OR g.live > 0));
END
$$;

-- Those of these lanes in which nothing is due and whose queues are not paused. `since` tells from
-- when on something may be due.
CREATE FUNCTION duly.drained(among integer[], since bigint, at bigint) RETURNS integer[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT l.lane FROM unnest(among) l(lane)
        WHERE NOT EXISTS (
            SELECT FROM generate_series(0, 9) r(rank), LATERAL (
                SELECT FROM duly.due d
                WHERE d.lane = l.lane AND d.rank = r.rank::smallint
                  AND d.run_at >= since AND d.run_at <= at
                LIMIT 1) waiting)
          AND NOT EXISTS (
            SELECT FROM duly.pause p JOIN duly.lane n ON n.tenant = p.tenant AND n.queue = p.queue
            WHERE n.id = l.lane));
END
$$;

-- Stores new tasks, whose ids come sorted. The first `room` of those that are due and alone in one of
-- the lanes `servable` are granted at once, under claim `asked` of session `who`; `turns` is the order
-- in which they were submitted.
CREATE FUNCTION duly.submit_batch(
    ids uuid[], turns integer[], run_ats bigint[], created_ats bigint[], lanes integer[],
    ranks smallint[], retries integer[], timeouts integer[], back_offs text[], labels text[],
    payloads text[], who uuid, asked bigint, room integer, servable integer[], since bigint,
    default_timeout integer, slack integer, OUT at bigint, OUT handed boolean[])
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    s    record;
    free integer[];
BEGIN
    at := duly.now();
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
                    FROM unnest(turns, run_ats, lanes)
                         WITH ORDINALITY u(turn, run_at, lane, n)) f) t;
    END IF;
    -- Columns are reached by number: to unnest eleven of them costs a tenth of a submit.
    INSERT INTO duly.task (id, run_at, created_at, granted_at, session, sequence, epoch, lane, run,
                           charged, retries, losses, timeout_ms, status, rank, back_off, labels,
                           payload)
    SELECT ids[n], run_ats[n], created_ats[n],
           CASE WHEN handed[n] THEN at END, CASE WHEN handed[n] THEN who END,
           CASE WHEN handed[n] THEN asked END, CASE WHEN handed[n] THEN 1 ELSE 0 END,
           lanes[n], 1, 0, retries[n], 0, timeouts[n],
           CASE WHEN handed[n] THEN 2 ELSE 1 END, ranks[n], back_offs[n], labels[n], payloads[n]
    FROM generate_series(1, cardinality(ids)) n;
    INSERT INTO duly.due (lane, rank, run_at, task)
    SELECT lanes[n], ranks[n], run_ats[n], ids[n]
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
