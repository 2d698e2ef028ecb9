-- The installation's settings, one row per version; the newest counts. `body` is JSON.
CREATE TABLE settings (
    version    INTEGER PRIMARY KEY,
    changed_at INTEGER NOT NULL,
    comment    TEXT,
    body       TEXT    NOT NULL
) STRICT;
