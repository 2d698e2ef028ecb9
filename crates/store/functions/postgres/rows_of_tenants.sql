-- Whether the caller sees this task. A function, so that statements about other tables are not planned
-- for all days of tasks: few rows are found there, and only for these it is called.
CREATE OR REPLACE FUNCTION duly.sees_task(id uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM duly.task t WHERE t.id = sees_task.id);
END
$$;

-- Lets duly_query see the rows of one tenant only: the one that `duly.tenant` names in its transaction;
-- without it, none. A node reads as duly_query whatever it answers a caller with. It writes, and reads
-- for all tenants, as a member of duly_engine, whose batches take no notice of tenants.
--
-- Tables without a policy hold nothing but ids and numbers. Days of tasks are not granted, only the table
-- that they are parts of. Owners and superusers are not held to policies.
CREATE OR REPLACE FUNCTION duly.limit_rows_to_tenants() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    by_tenant   constant text := 'tenant = current_setting(''duly.tenant'', true)';
    by_lane     constant text := 'EXISTS (SELECT FROM duly.lane l WHERE l.id = %I.lane)';
    by_task     constant text := 'duly.sees_task(%I.task)';
    by_workflow constant text := 'EXISTS (SELECT FROM duly.workflow w WHERE w.id = %I.workflow)';
    by_schedule constant text := 'EXISTS (SELECT FROM duly.schedule s WHERE s.id = %I.schedule)';
    one         record;
BEGIN
    FOR one IN SELECT * FROM (VALUES
        ('lane', by_tenant), ('pause', by_tenant), ('workflow', by_tenant), ('schedule', by_tenant),
        -- Workers inside of nodes belong to no tenant.
        ('session', 'tenant IS NULL OR ' || by_tenant),
        ('task', by_lane), ('due', by_lane), ('blocked', by_lane), ('dlq', by_lane),
        ('attempt', by_task), ('log', by_task), ('progress', by_task), ('member', by_workflow),
        ('schedule_position', by_schedule), ('slot', by_schedule)
    ) AS rules (name, condition) LOOP
        EXECUTE format('GRANT SELECT ON duly.%I TO duly_query', one.name);
        -- A change waits for all who use the table. The comment tells what is in place.
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_catalog.pg_policy p
            WHERE p.polrelid = format('duly.%I', one.name)::regclass AND p.polname = 'of_tenant'
              AND obj_description(p.oid, 'pg_policy') = one.condition);
        EXECUTE format('ALTER TABLE duly.%I ENABLE ROW LEVEL SECURITY', one.name);
        EXECUTE format('DROP POLICY IF EXISTS of_all ON duly.%I', one.name);
        EXECUTE format('DROP POLICY IF EXISTS of_tenant ON duly.%I', one.name);
        EXECUTE format('CREATE POLICY of_all ON duly.%I TO duly_engine USING (true)', one.name);
        EXECUTE format('CREATE POLICY of_tenant ON duly.%I FOR SELECT TO duly_query USING ('
                       || one.condition || ')', one.name, one.name);
        EXECUTE format('COMMENT ON POLICY of_tenant ON duly.%I IS %L', one.name, one.condition);
    END LOOP;
    GRANT SELECT ON duly.edge, duly.grant_log TO duly_query;
END
$$;
