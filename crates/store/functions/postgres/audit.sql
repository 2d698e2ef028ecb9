-- Deletes entries of the audit log that were made before this time, oldest first, and never those of the
-- last 30 days. Nodes may delete no entry otherwise. Their own word for the time does not count: only the
-- owner, such as a test, may set the clock.
CREATE OR REPLACE FUNCTION duly.forget_audit(made_before bigint, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    day     constant bigint := 86400000;
    clock   bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    deleted integer;
BEGIN
    IF pg_has_role(session_user, current_user, 'MEMBER') THEN
        clock := duly.now();
    END IF;
    DELETE FROM duly.audit WHERE number IN (
        SELECT a.number FROM duly.audit a
        WHERE a.at < least(made_before, clock - 30 * day) ORDER BY a.at LIMIT most);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;
