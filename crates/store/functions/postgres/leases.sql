-- The batches of leases that sessions hold. Functions here are in PL/pgSQL since those in SQL are
-- planned again for every call.

-- The newest claim of a session. `of_row` is what its own row says. The last batch stays until the next
-- one is granted. Reads from the end of the index: while a transaction holds an old snapshot, all
-- deleted rows are before, and a plan that sorts would read them.
CREATE OR REPLACE FUNCTION duly.newest(who uuid, of_row bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN greatest(of_row, (SELECT g.sequence FROM duly.grant_log g WHERE g.session = who
                             ORDER BY g.sequence DESC LIMIT 1));
END
$$;

-- Whether a session holds a lease. Reads from the newest batch back: deleted rows are before.
CREATE OR REPLACE FUNCTION duly.holds(who uuid) RETURNS boolean LANGUAGE plpgsql STABLE
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM (SELECT FROM duly.grant_log g WHERE g.session = who AND g.live > 0
                                ORDER BY g.sequence DESC LIMIT 1) any_of_them);
END
$$;

-- Whether a claim may be granted tasks: it is a new one, or it is the newest and has no batch. A batch
-- that was taken back before its session received it was never granted, as far as the session knows.
CREATE OR REPLACE FUNCTION duly.admits(who uuid, newest bigint, asked bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN asked >= newest AND NOT EXISTS (
        SELECT FROM duly.grant_log g
        WHERE g.session = who AND g.sequence = asked AND (g.received OR g.live > 0));
END
$$;

-- Records a batch of leases, which replaces an earlier one of the same claim.
CREATE OR REPLACE FUNCTION duly.record_grant(
    who uuid, asked bigint, at bigint, tasks uuid[], epochs integer[], timeouts integer[],
    default_timeout integer, slack integer)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO duly.grant_log AS g (session, sequence, granted_at, served_at, deadline, live,
                                     received, tasks, epochs)
    VALUES (who, asked, at, at,
            at + slack + (SELECT min(coalesce(u.ms, default_timeout)) FROM unnest(timeouts) u(ms)),
            cardinality(tasks), false, tasks, epochs)
    ON CONFLICT (session, sequence) DO UPDATE
    SET granted_at = at, served_at = at, deadline = excluded.deadline, live = excluded.live,
        received = false, tasks = excluded.tasks, epochs = excluded.epochs;
END
$$;

-- Deletes the batch before a new one if none of its leases lives, and those that ended meanwhile. Does
-- not look at batches long before, where deleted rows may lie that cannot be vacuumed yet.
CREATE OR REPLACE FUNCTION duly.forget_before(who uuid, asked bigint) RETURNS void LANGUAGE plpgsql
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    DELETE FROM duly.grant_log g
    WHERE g.session = who AND g.sequence < asked AND g.live <= 0
      AND g.sequence >= least(asked - 64, (SELECT l.sequence FROM duly.grant_log l
                                           WHERE l.session = who AND l.sequence < asked
                                           ORDER BY l.sequence DESC LIMIT 1));
END
$$;

-- Leases have ended: `counts` of each of these batches, which come sorted. `acknowledged` says that
-- their holders have reported it, and so have received the batches. A batch without a live lease is
-- deleted if the session has a newer one, and until then it is never overdue. One batch after the
-- other, each by its key: a join would be planned by the rows that are visible, and while a
-- transaction holds an old snapshot there are far more.
CREATE OR REPLACE FUNCTION duly.end_batch_leases(
    sessions uuid[], sequences bigint[], counts integer[], acknowledged boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n        record;
    rest     integer;
    is_older boolean;
BEGIN
    FOR n IN SELECT * FROM unnest(sessions, sequences, counts) u(session, sequence, ended) LOOP
        is_older := n.sequence < duly.newest(n.session, 0);
        IF is_older THEN
            DELETE FROM duly.grant_log g
            WHERE g.session = n.session AND g.sequence = n.sequence AND g.live <= n.ended;
            CONTINUE WHEN FOUND;
        END IF;
        UPDATE duly.grant_log g
        SET live = g.live - n.ended, received = g.received OR acknowledged,
            deadline = CASE WHEN g.live > n.ended THEN g.deadline ELSE 9223372036854775807 END
        WHERE g.session = n.session AND g.sequence = n.sequence RETURNING g.live INTO rest;
        -- Another transaction may have ended other leases of the batch at the same time.
        IF is_older AND rest <= 0 THEN
            DELETE FROM duly.grant_log g
            WHERE g.session = n.session AND g.sequence = n.sequence AND g.live <= 0;
        END IF;
    END LOOP;
END
$$;
