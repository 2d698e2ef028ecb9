-- When handlers started, sessions that drain, and leases that a cancel has revoked.
--
-- The numbers 0011 to 0015 were in use between releases. A database of that time has all of this
-- already, so each part is skipped where it is there.

-- While a task is RUNNING: when its lease is overdue, if that was moved. Once its run has ended: when the
-- handler of its last attempt started, if that is known; a worker reports with the outcome how long its
-- handler ran, so that the start needs no write. One column for both keeps the payload last in the row,
-- and so out of the log of every update; only a column before it can do that.
DO $$
BEGIN
    ALTER TABLE duly.task RENAME COLUMN extended_to TO deadline_or_start;
EXCEPTION WHEN undefined_column THEN
    NULL;
END
$$;

-- A session that drains finishes what it holds and is granted nothing more.
ALTER TABLE duly.session
    ADD COLUMN IF NOT EXISTS draining boolean NOT NULL DEFAULT false,
    -- When the last heartbeat came; 0 as long as an older node keeps it alive.
    ADD COLUMN IF NOT EXISTS beat_at  bigint  NOT NULL DEFAULT 0;

-- Leases that a cancel has revoked, for the nodes through which their sessions claim: a node collects the
-- rows of its sessions and notifies the workers. Most of the time the table is empty.
CREATE TABLE IF NOT EXISTS duly.revocation (
    session uuid    NOT NULL,
    task    uuid    NOT NULL,
    epoch   integer NOT NULL,
    PRIMARY KEY (session, task)
);
