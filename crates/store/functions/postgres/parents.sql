-- The edges to tasks, sorted by parent, and what is known of these tasks and of their parents (`kin`).
-- Results come along as long as all of them together fit into `byte_limit`; `kin_sizes` says how long each
-- is. `kin_keys` are the names of tasks in their own workflows. If there are more edges than `most`, nothing
-- is read and all columns are NULL. STABLE: all statements see the moment of the call.
CREATE OR REPLACE FUNCTION duly.parents(
    of_tasks uuid[], byte_limit bigint, most integer,
    OUT edge_children uuid[], OUT edge_parents uuid[], OUT edge_conditions smallint[],
    OUT edge_states smallint[], OUT kin uuid[], OUT kin_statuses smallint[], OUT kin_sizes integer[],
    OUT kin_results text[], OUT kin_errors text[], OUT kin_workflows uuid[], OUT kin_keys text[])
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    sorted uuid[];
BEGIN
    SELECT array_agg(e.child), array_agg(e.parent), array_agg(e.condition), array_agg(e.state)
    INTO edge_children, edge_parents, edge_conditions, edge_states
    FROM (SELECT * FROM (SELECT * FROM duly.edge e WHERE e.child = ANY (of_tasks) LIMIT most + 1) e
          ORDER BY e.parent) e;
    IF cardinality(edge_parents) > most THEN
        edge_children := NULL;
        edge_parents := NULL;
        edge_conditions := NULL;
        edge_states := NULL;
        RETURN;
    END IF;
    sorted := ARRAY(SELECT DISTINCT i.id FROM unnest(of_tasks || edge_parents) i(id) ORDER BY 1);
    PERFORM duly.plan_for(sorted);
    SELECT array_agg(t.id), array_agg(t.status), array_agg(t.size),
           array_agg(CASE WHEN t.total <= byte_limit THEN t.result END), array_agg(t.error),
           array_agg(t.workflow), array_agg(t.key)
    INTO kin, kin_statuses, kin_sizes, kin_results, kin_errors, kin_workflows, kin_keys
    FROM (SELECT t.id, t.status, t.error, t.workflow, t.result,
                 coalesce(octet_length(t.result), 0) AS size,
                 sum(octet_length(t.result)) OVER (ORDER BY t.id) AS total,
                 (SELECT m.key FROM duly.member m
                  WHERE m.workflow = t.workflow AND m.task = t.id) AS key
          FROM duly.task t
          WHERE t.id = ANY (sorted) AND t.id BETWEEN sorted[1] AND sorted[cardinality(sorted)]) t;
END
$$;
