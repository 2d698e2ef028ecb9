-- How a node has introduced itself; one that has not is not listed.
ALTER TABLE duly.node
    ADD COLUMN name    text,
    ADD COLUMN roles   text[],
    ADD COLUMN version text,
    ADD COLUMN address text;

-- The lead ends by the store's clock.
ALTER TABLE duly.leader RENAME COLUMN beat TO ends_at;
