-- Those of these lanes in which nothing is due and whose queues are not paused. `since` is the earliest
-- time from which tasks may be due. A pause without a queue is of all queues of a suspended tenant.
CREATE OR REPLACE FUNCTION duly.drained(among integer[], since bigint, at bigint) RETURNS integer[]
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
            SELECT FROM duly.pause p
            JOIN duly.lane n ON n.tenant = p.tenant AND p.queue IN (n.queue, '')
            WHERE n.id = l.lane));
END
$$;

-- Submits new tasks, whose ids come sorted. The first `room` of those that are due and alone in one of
-- the lanes `servable` are handed off: granted at once, to session `who` under its claim `asked`.
-- `turns` is the order in which they were submitted. A task with a delay is due that long after now by
-- this server's clock: a node only estimates that clock, and would start tasks early if its estimate
-- is behind. A task without a delay is due at its `run_ats`. A caller that runs on this server says by
-- `read_at` what it read from the clock. `told` says whether events were written.
CREATE OR REPLACE FUNCTION duly.submit_tasks(
    ids uuid[], turns integer[], run_ats bigint[], delays bigint[], lanes integer[],
    ranks smallint[], retries integer[], timeouts integer[], back_offs text[], labels text[],
    payloads text[], who uuid, asked bigint, room integer, servable integer[], since bigint,
    default_timeout integer, slack integer, read_at bigint, OUT at bigint, OUT handed boolean[],
    OUT told boolean)
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
    told := duly.store_tasks(ids, dues, lanes, ranks, retries, timeouts, back_offs, labels, payloads,
                             at, who, asked, handed);
    IF true = ANY (handed) THEN
        PERFORM duly.record_grant(who, asked, at, h.tasks, h.epochs, h.timeouts, default_timeout, slack)
        FROM (SELECT array_agg(u.id ORDER BY u.turn) AS tasks, array_agg(1) AS epochs,
                     array_agg(u.timeout_ms) AS timeouts
              FROM unnest(ids, turns, timeouts, handed) u(id, turn, timeout_ms, granted)
              WHERE u.granted) h;
        IF s.alone THEN
            UPDATE duly.session SET alone = false WHERE id = who;
        END IF;
        PERFORM duly.forget_before(who, asked);
    END IF;
END
$$;
