-- A session that drains finishes what it holds and is granted nothing more.
ALTER TABLE duly.session
    ADD COLUMN draining boolean NOT NULL DEFAULT false,
    -- When the last sign of life came; 0 as long as an older node keeps it alive.
    ADD COLUMN beat_at  bigint  NOT NULL DEFAULT 0;
