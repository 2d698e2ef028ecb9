-- Processes that have the store open.
CREATE TABLE duly.node (
    id         uuid   NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    started_at bigint NOT NULL,
    -- When it last asked whether the store takes writes.
    checked_at bigint NOT NULL
);

-- Who does what only one node may do at a time.
CREATE TABLE duly.leader (
    role    text   NOT NULL PRIMARY KEY,
    node    uuid   NOT NULL,
    term    bigint NOT NULL,
    beat    bigint NOT NULL
);

-- Worker processes. A row is written with every beat, so its page keeps room. It is not written with
-- every claim: while somebody holds an old snapshot, a row that is written n times is found by way of
-- n versions.
CREATE TABLE duly.session (
    id        uuid    NOT NULL PRIMARY KEY,
    -- In which node's process it runs; none for a process elsewhere.
    node      uuid,
    name      text    NOT NULL,
    tenant    text,
    types     text[]  NOT NULL,
    queues    text[]  NOT NULL,
    opened_at bigint  NOT NULL,
    ended_at  bigint,
    -- Whether its leases count as lost: it was seen dead and did not leave by itself.
    died      boolean NOT NULL DEFAULT false,
    -- Counts signs of life.
    beat      bigint  NOT NULL DEFAULT 0,
    -- The newest claim of those that were granted nothing; see duly.newest.
    newest    bigint  NOT NULL DEFAULT 0,
    -- The suspect for which it takes nothing more until it holds nothing.
    waits_for uuid,
    -- Whether what it holds is a suspect.
    alone     boolean NOT NULL DEFAULT false,
    -- What it holds and has not started, as it last said.
    unstarted uuid[]  NOT NULL DEFAULT '{}'
) WITH (fillfactor = 20);

-- Open ones, and those that wait for a suspect.
CREATE INDEX session_open ON duly.session (id) WHERE ended_at IS NULL;
CREATE INDEX session_waits ON duly.session (waits_for)
    WHERE waits_for IS NOT NULL AND ended_at IS NULL;

-- One row per batch of leases, kept while one of them lives and until its session claims again:
-- from here leases are found by who holds them and when they are overdue.
CREATE TABLE duly.grant_log (
    session    uuid      NOT NULL,
    sequence   bigint    NOT NULL,
    granted_at bigint    NOT NULL,
    -- When it was last handed to its session.
    served_at  bigint    NOT NULL,
    -- No lease in it is overdue before this.
    deadline   bigint    NOT NULL,
    -- How many of its leases live.
    live       integer   NOT NULL,
    -- Whether the session has said that it has it.
    received   boolean   NOT NULL,
    tasks      uuid[]    NOT NULL,
    epochs     integer[] NOT NULL,
    PRIMARY KEY (session, sequence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);

-- Ids do not get smaller by trying.
ALTER TABLE duly.grant_log ALTER COLUMN tasks SET STORAGE EXTERNAL;

CREATE INDEX grant_log_deadline ON duly.grant_log (deadline);
CREATE INDEX grant_log_unheard ON duly.grant_log (served_at) WHERE NOT received;

-- The newest claim of a session, of which it is told what stands in its own row. The last batch stays
-- until the next one comes. Read from the end of the index: while somebody holds an old snapshot, all
-- that is gone lies before, and a plan that sorts would read it.
CREATE FUNCTION duly.newest(who uuid, of_row bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN greatest(of_row, (SELECT g.sequence FROM duly.grant_log g WHERE g.session = who
                             ORDER BY g.sequence DESC LIMIT 1));
END
$$;

-- Whether a session holds a lease. From the newest batch back: those that are gone lie before.
CREATE FUNCTION duly.holds(who uuid) RETURNS boolean LANGUAGE plpgsql STABLE
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM (SELECT FROM duly.grant_log g WHERE g.session = who AND g.live > 0
                                ORDER BY g.sequence DESC LIMIT 1) any_of_them);
END
$$;

-- Removes the batch before, if no lease of it lives, now that a newer one comes, and those that ended
-- while others came. Those long before are not looked at, for the sake of the ones that are gone and
-- cannot be removed yet.
CREATE FUNCTION duly.forget_before(who uuid, asked bigint) RETURNS void LANGUAGE plpgsql
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    DELETE FROM duly.grant_log g
    WHERE g.session = who AND g.sequence < asked AND g.live <= 0
      AND g.sequence >= least(asked - 64, (SELECT l.sequence FROM duly.grant_log l
                                           WHERE l.session = who AND l.sequence < asked
                                           ORDER BY l.sequence DESC LIMIT 1));
END
$$;

-- Leases have ended: so many of each of these batches, which come sorted. A batch without a live one is
-- gone if a newer one has come, and until then it is never overdue. One batch after the other, each by
-- its key: a join would be planned by what is there, and while somebody holds an old snapshot that is
-- far more than it seems.
-- Not a function in SQL, here and below: those are planned anew for every call.
CREATE FUNCTION duly.end_leases(
    sessions uuid[], sequences bigint[], counts integer[], heard boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n    record;
    rest integer;
BEGIN
    FOR n IN SELECT * FROM unnest(sessions, sequences, counts) u(session, sequence, ended) LOOP
        DELETE FROM duly.grant_log g
        WHERE g.session = n.session AND g.sequence = n.sequence AND g.live <= n.ended
          AND n.sequence < duly.newest(n.session, 0);
        IF NOT FOUND THEN
            UPDATE duly.grant_log g
            SET live = g.live - n.ended, received = g.received OR heard,
                deadline = CASE WHEN g.live > n.ended THEN g.deadline ELSE 9223372036854775807 END
            WHERE g.session = n.session AND g.sequence = n.sequence RETURNING g.live INTO rest;
            -- Somebody may have ended others of them at the same time.
            IF rest <= 0 THEN
                DELETE FROM duly.grant_log g
                WHERE g.session = n.session AND g.sequence = n.sequence AND g.live <= 0
                  AND n.sequence < duly.newest(n.session, 0);
            END IF;
        END IF;
    END LOOP;
END
$$;

-- Tries that failed or were lost with their worker.
CREATE TABLE duly.attempt (
    task       uuid    NOT NULL,
    epoch      integer NOT NULL,
    run        integer NOT NULL,
    attempt    integer NOT NULL,
    started_at bigint  NOT NULL,
    ended_at   bigint  NOT NULL,
    session    uuid,
    error      text    NOT NULL,
    PRIMARY KEY (task, epoch)
);

-- A row exists exactly while its task is FAILED.
CREATE TABLE duly.dlq (
    task        uuid    NOT NULL PRIMARY KEY,
    failed_at   bigint  NOT NULL,
    lane        integer NOT NULL,
    error_group bigint  NOT NULL
);

CREATE INDEX dlq_place ON duly.dlq (failed_at, task);
CREATE INDEX dlq_lane ON duly.dlq (lane, failed_at, task);
