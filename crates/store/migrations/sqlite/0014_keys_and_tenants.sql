-- API keys. `hash` is the SHA-256 of the secret, which is stored nowhere. `tenant` is * for the
-- installation. `roles`, `queues` and `types` are names with commas between them.
CREATE TABLE api_key (
    id           BLOB    NOT NULL PRIMARY KEY,
    hash         BLOB    NOT NULL,
    name         TEXT    NOT NULL,
    tenant       TEXT    NOT NULL,
    roles        TEXT    NOT NULL,
    queues       TEXT    NOT NULL,
    types        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_key_by_hash ON api_key (hash);
CREATE INDEX api_key_by_tenant ON api_key (tenant, id);

-- What is recorded about tenants. `quotas` and `settings` are JSON. A suspended tenant also has a row in
-- `pause` whose queue is empty: it stands for all of its queues.
CREATE TABLE tenant (
    name         TEXT    NOT NULL PRIMARY KEY,
    version      INTEGER NOT NULL,
    suspended_at INTEGER,
    note         TEXT,
    quotas       TEXT    NOT NULL,
    settings     TEXT    NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- To count the workflows of a tenant that have not ended.
CREATE INDEX workflow_open ON workflow (tenant) WHERE status = 0;
