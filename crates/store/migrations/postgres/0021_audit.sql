-- What users changed: written in the commits of the changes, and never changed itself. `before` and
-- `after` are JSON. Nodes may only add and read entries: see the function duly.grant_rights.

CREATE TABLE duly.audit (
    number     bigint NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         bigint NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    tenant     text COLLATE "C",
    action     text COLLATE "C" NOT NULL,
    target     text NOT NULL,
    before     text,
    after      text,
    request_id text
);

CREATE INDEX audit_by_time ON duly.audit (at);
CREATE INDEX audit_of_tenant ON duly.audit (tenant, number);
CREATE INDEX audit_by_actor ON duly.audit (actor, number);

-- Who opened a session, and alone may use it.
ALTER TABLE duly.session ADD COLUMN owner text;
