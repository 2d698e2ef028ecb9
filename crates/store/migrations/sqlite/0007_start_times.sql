-- When the handler of a task's last attempt started, once its run has ended. A worker tells with the
-- outcome how long it ran, so that no write is spent on the start.
ALTER TABLE task ADD COLUMN started_at INTEGER;
