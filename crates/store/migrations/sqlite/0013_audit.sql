-- What users changed: written in the commits of the changes, and never changed itself. `before` and
-- `after` are JSON. Numbers are not given again.
CREATE TABLE audit (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    tenant     TEXT,
    action     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    before     TEXT,
    after      TEXT,
    request_id TEXT
) STRICT;

CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_of_tenant ON audit (tenant, number);
CREATE INDEX audit_by_actor ON audit (actor, number);

-- Before which time entries may be deleted. Only retention raises it, and sets it back at once.
CREATE TABLE audit_retention (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    before INTEGER NOT NULL
) STRICT;

INSERT INTO audit_retention (id, before) VALUES (1, 0);

CREATE TRIGGER audit_stays_as_it_is BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
WHEN OLD.at >= (SELECT before FROM audit_retention) BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

-- A replacement by INSERT OR REPLACE fires no trigger of a deletion.
CREATE TRIGGER audit_is_not_overwritten BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

-- Who opened a session, and alone may use it.
ALTER TABLE session ADD COLUMN owner TEXT;
