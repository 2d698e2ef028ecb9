-- Rights for those who run the engine, for those who answer queries and for applications that submit
-- and finish tasks in transactions of their own, to be granted to the users of an installation that
-- keeps them apart. Whoever may not make roles goes without.
DO $$
DECLARE
    roles constant text[] := ARRAY['duly_engine', 'duly_query', 'duly_application'];
    role  text;
BEGIN
    IF NOT (SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE NOTICE 'the roles % are not made: % may not', roles, current_user;
        RETURN;
    END IF;
    FOREACH role IN ARRAY roles LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- roles are the server's: another database may have made them
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA duly TO %I', role);
    END LOOP;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA duly TO duly_engine;
    GRANT SELECT ON ALL TABLES IN SCHEMA duly TO duly_query;
    -- The same for tables and days that come later.
    ALTER DEFAULT PRIVILEGES IN SCHEMA duly
        GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO duly_engine;
    ALTER DEFAULT PRIVILEGES IN SCHEMA duly GRANT SELECT ON TABLES TO duly_query;
    -- What was applied is the owner's business.
    REVOKE INSERT, UPDATE, DELETE ON duly.migration FROM duly_engine;
    GRANT EXECUTE ON FUNCTION duly.make_day, duly.drop_day TO duly_engine;
    -- To see whether the disk has room again.
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO duly_engine', current_database());
END
$$;
