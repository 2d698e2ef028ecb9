-- A session that drains finishes what it holds and is granted nothing more.
ALTER TABLE session ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
