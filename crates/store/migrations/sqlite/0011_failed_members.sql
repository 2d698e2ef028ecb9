-- Whether a task of the workflow has ever failed. If not, its end need not search for failures.
-- For workflows that are there already this is not known.
ALTER TABLE workflow ADD COLUMN has_failed INTEGER NOT NULL DEFAULT 1;
