-- The edges to tasks, sorted by parent, and what is known of these tasks and of their parents. Results
-- come along as long as all of them together fit into `byte_limit`; `sizes` says how long each is. `keys`
-- are the names of tasks in their own workflows. STABLE: all statements see the moment of the call.
CREATE OR REPLACE FUNCTION duly.parents(
    of_tasks uuid[], byte_limit bigint,
    OUT children uuid[], OUT parents uuid[], OUT conditions smallint[], OUT states smallint[],
    OUT tasks uuid[], OUT statuses smallint[], OUT sizes integer[], OUT results text[],
    OUT errors text[], OUT workflows uuid[], OUT keys text[])
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    sorted uuid[];
BEGIN
    SELECT array_agg(e.child), array_agg(e.parent), array_agg(e.condition), array_agg(e.state)
    INTO children, parents, conditions, states
    FROM (SELECT * FROM duly.edge e WHERE e.child = ANY (of_tasks) ORDER BY e.parent) e;
    sorted := ARRAY(SELECT DISTINCT i.id FROM unnest(of_tasks || parents) i(id) ORDER BY 1);
    PERFORM duly.plan_for(sorted);
    SELECT array_agg(t.id), array_agg(t.status), array_agg(t.size),
           array_agg(CASE WHEN t.total <= byte_limit THEN t.result END), array_agg(t.error),
           array_agg(t.workflow), array_agg(t.key)
    INTO tasks, statuses, sizes, results, errors, workflows, keys
    FROM (SELECT t.id, t.status, t.error, t.workflow, t.result,
                 coalesce(octet_length(t.result), 0) AS size,
                 sum(octet_length(t.result)) OVER (ORDER BY t.id) AS total,
                 (SELECT m.key FROM duly.member m
                  WHERE m.workflow = t.workflow AND m.task = t.id) AS key
          FROM duly.task t
          WHERE t.id = ANY (sorted) AND t.id BETWEEN sorted[1] AND sorted[cardinality(sorted)]) t;
END
$$;
