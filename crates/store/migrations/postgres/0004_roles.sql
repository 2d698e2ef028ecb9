-- Makes roles for those who run the engine, for those who answer queries and for applications that
-- submit and finish tasks in transactions of their own, to be granted to the users of an installation
-- that keeps them apart; and gives them their rights. Whoever may not make roles uses those that
-- somebody else has made. Answers which are missing. May be repeated.
CREATE FUNCTION duly.grant_rights() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    roles   constant text[] := ARRAY['duly_engine', 'duly_query', 'duly_application'];
    missing text[] := '{}';
    role    text;
BEGIN
    FOREACH role IN ARRAY roles LOOP
        BEGIN
            IF to_regrole(role) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL; -- roles are the server's: another database has made it a moment ago
            WHEN insufficient_privilege THEN
                missing := missing || role;
                CONTINUE;
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA duly TO %I', role);
    END LOOP;
    IF NOT 'duly_engine' = ANY (missing) THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA duly TO duly_engine;
        -- The same for tables and days that come later.
        ALTER DEFAULT PRIVILEGES IN SCHEMA duly
            GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO duly_engine;
        -- What was applied is the owner's business.
        REVOKE INSERT, UPDATE, DELETE ON duly.migration FROM duly_engine;
        GRANT EXECUTE ON FUNCTION duly.make_day, duly.drop_day TO duly_engine;
        -- To see whether the disk has room again.
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO duly_engine', current_database());
    END IF;
    IF NOT 'duly_query' = ANY (missing) THEN
        GRANT SELECT ON ALL TABLES IN SCHEMA duly TO duly_query;
        ALTER DEFAULT PRIVILEGES IN SCHEMA duly GRANT SELECT ON TABLES TO duly_query;
    END IF;
    IF NOT 'duly_application' = ANY (missing) THEN
        GRANT EXECUTE ON FUNCTION duly.submit, duly.finish TO duly_application;
    END IF;
    RETURN missing;
END
$$;
