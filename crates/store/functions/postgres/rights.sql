-- Creates the roles duly_engine (for nodes), duly_query (for what callers read) and duly_application (for
-- applications that submit and finish tasks in their own transactions) and gives them their rights. An
-- installation grants them to its users. A user who may not create roles uses those that exist. Answers
-- with the roles that are missing. May be repeated: it runs whenever the functions are replaced.
CREATE OR REPLACE FUNCTION duly.grant_rights() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    roles   constant text[] := ARRAY['duly_engine', 'duly_query', 'duly_application'];
    missing text[] := '{}';
    role    text;
BEGIN
    REVOKE ALL ON FUNCTION duly.make_day, duly.drop_day, duly.submit, duly.finish,
        duly.forget_audit, duly.empty_segment, duly.adopt_events FROM PUBLIC;
    FOREACH role IN ARRAY roles LOOP
        BEGIN
            IF to_regrole(role) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL; -- roles belong to the server: another database has just created it
            WHEN insufficient_privilege THEN
                missing := missing || role;
                CONTINUE;
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA duly TO %I', role);
    END LOOP;
    IF NOT 'duly_engine' = ANY (missing) THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA duly TO duly_engine;
        -- The same for tables and days that are created later.
        ALTER DEFAULT PRIVILEGES IN SCHEMA duly
            GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO duly_engine;
        -- Only the owner changes the schema.
        REVOKE INSERT, UPDATE, DELETE ON duly.migration, duly.functions FROM duly_engine;
        -- The audit log is append-only: entries go only by the function that forgets old ones.
        REVOKE UPDATE, DELETE, TRUNCATE ON duly.audit FROM duly_engine;
        -- Events stay as they are written, and go by whole segments.
        REVOKE UPDATE, DELETE, TRUNCATE ON duly.outbox, duly.outbox_0, duly.outbox_1, duly.outbox_2,
            duly.outbox_3 FROM duly_engine;
        GRANT USAGE, SELECT ON SEQUENCE duly.event_number TO duly_engine;
        GRANT EXECUTE ON FUNCTION duly.make_day, duly.drop_day, duly.forget_audit, duly.empty_segment,
            duly.adopt_events TO duly_engine;
        -- To see whether the disk has room again.
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO duly_engine', current_database());
    END IF;
    IF NOT 'duly_query' = ANY (missing) THEN
        -- Earlier versions granted it all tables, also those to come.
        ALTER DEFAULT PRIVILEGES IN SCHEMA duly REVOKE SELECT ON TABLES FROM duly_query;
        REVOKE ALL ON ALL TABLES IN SCHEMA duly FROM duly_query;
    END IF;
    IF NOT missing && ARRAY['duly_engine', 'duly_query'] THEN
        PERFORM duly.limit_rows_to_tenants();
        BEGIN
            -- So that nodes can read as duly_query.
            IF NOT pg_has_role('duly_engine', 'duly_query', 'MEMBER') THEN
                GRANT duly_query TO duly_engine;
            END IF;
        EXCEPTION
            WHEN unique_violation OR insufficient_privilege THEN
                NULL; -- roles belong to the server: another database has just done it, or an admin has to
        END;
    END IF;
    IF NOT 'duly_application' = ANY (missing) THEN
        GRANT EXECUTE ON FUNCTION duly.submit, duly.finish TO duly_application;
    END IF;
    RETURN missing;
END
$$;
