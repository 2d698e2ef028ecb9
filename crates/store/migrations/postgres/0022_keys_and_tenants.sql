-- API keys, tenants' records, and who submits for which tenant.

-- `hash` is the SHA-256 of the secret, which is stored nowhere. `tenant` is * for the installation.
-- `roles`, `queues` and `types` are names with commas between them.
CREATE TABLE duly.api_key (
    id         uuid   NOT NULL PRIMARY KEY,
    hash       bytea  NOT NULL,
    name       text   NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    roles      text   NOT NULL,
    queues     text   NOT NULL,
    types      text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

CREATE UNIQUE INDEX api_key_by_hash ON duly.api_key (hash);
CREATE INDEX api_key_by_tenant ON duly.api_key (tenant, id);

-- Apart from the keys: it is written again and again.
CREATE TABLE duly.api_key_use (
    key          uuid   NOT NULL PRIMARY KEY,
    last_used_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- `quotas` and `settings` are JSON. A suspended tenant also has a row in duly.pause whose queue is empty: it
-- stands for all of its queues.
CREATE TABLE duly.tenant (
    name         text COLLATE "C" NOT NULL PRIMARY KEY,
    version      bigint NOT NULL,
    suspended_at bigint,
    note         text,
    quotas       text   NOT NULL,
    settings     text   NOT NULL,
    created_at   bigint NOT NULL
);

-- The tenants for which applications submit, by the role that they log in with or that it is a member of;
-- * stands for all tenants. Without a row every application submits for every tenant.
CREATE TABLE duly.application_tenant (
    role   text NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    PRIMARY KEY (role, tenant)
);

-- To count the workflows of a tenant that have not ended.
CREATE INDEX workflow_open ON duly.workflow (tenant) WHERE status = 0;
