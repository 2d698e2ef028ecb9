-- Whether a task of the workflow has ever failed. If not, its end need not search for failures.
-- For workflows that are there already this is not known.
ALTER TABLE duly.workflow ADD COLUMN has_failed boolean NOT NULL DEFAULT true;
ALTER TABLE duly.workflow ALTER COLUMN has_failed SET DEFAULT false;
