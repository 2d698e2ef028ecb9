-- Part of task_state.sql: what follows from the end of tasks that are tied to others. Their edges are
-- resolved, their children released, their workflows ended.

-- Settles tasks that this transaction has ended, whose rows it has locked. Each part of hook `ended`
-- calls it, for tasks whose `links` are not NULL. Answers with the children that are PENDING now.
--
-- Locks are taken in one order: tasks by their ids, parents before children, then workflows by theirs.
-- The edges are read by a statement of its own, after the parents were locked: a submit that raised the
-- links of a parent first has committed its edges by then, and the statement that ended the parent
-- could not see them. Children are counted down by the number of their edges: two parents may end in
-- one batch.
--
-- Unless `any_plan`, each statement is planned for its ids: a plan for any task would lock all days until
-- the end of the transaction, which may be an application's.
CREATE OR REPLACE FUNCTION duly.settle_tasks(
    ids uuid[], at bigint, any_plan boolean,
    OUT tasks uuid[], OUT lanes integer[], OUT ranks smallint[], OUT run_ats bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    sorted  constant uuid[] := ARRAY(SELECT i.id FROM unnest(ids) i(id) ORDER BY i.id);
    lowest  constant uuid   := sorted[1];
    highest constant uuid   := sorted[cardinality(sorted)];
    ended     record;
    edges     record;
    children  record;
    free      uuid[];
    delays    bigint[];
    flows     uuid[];
    cancelled uuid[];
BEGIN
    IF any_plan THEN
        PERFORM duly.plan_for(sorted);
    END IF;
    SELECT array_agg(t.id) AS ids, array_agg(t.status) AS statuses, array_agg(t.workflow) AS flows
    INTO ended FROM duly.task t
    WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest AND t.links IS NOT NULL;
    WITH resolved AS (
        UPDATE duly.edge e
        SET state = CASE WHEN e.condition = 2 OR e.condition = 0 AND p.status = 3
                           OR e.condition = 1 AND p.status = 4 THEN 1 ELSE 2 END
        FROM unnest(ended.ids, ended.statuses) p(id, status)
        WHERE e.parent = p.id AND e.state = 0
        RETURNING e.child, e.state)
    SELECT array_agg(DISTINCT r.child ORDER BY r.child) AS children,
           array_agg(r.child) FILTER (WHERE r.state = 1) AS met,
           array_agg(r.child) FILTER (WHERE r.state = 2) AS broken
    INTO edges FROM resolved r;
    IF edges.children IS NOT NULL THEN
        IF any_plan THEN
            PERFORM duly.plan_for(edges.children);
        END IF;
        SELECT array_agg(c.id) AS ids, array_agg(c.lane) AS lanes, array_agg(c.workflow) AS flows
        INTO children
        FROM (SELECT t.id, t.lane, t.workflow FROM duly.task t
              WHERE t.id = ANY (edges.children)
                AND t.id BETWEEN edges.children[1] AND edges.children[cardinality(edges.children)]
                AND t.status = 0
              ORDER BY t.id FOR NO KEY UPDATE) c;
        IF edges.met IS NOT NULL THEN
            WITH lowered AS (
                UPDATE duly.blocked b SET open = b.open - n.met
                FROM (SELECT c.id, c.lane, count(*)::integer AS met
                      FROM unnest(children.ids, children.lanes) c(id, lane)
                      JOIN unnest(edges.met) m(child) ON m.child = c.id
                      GROUP BY c.id, c.lane) n
                WHERE b.lane = n.lane AND b.task = n.id
                RETURNING b.task, b.open)
            SELECT array_agg(l.task) INTO free FROM lowered l WHERE l.open = 0;
        END IF;
        IF edges.broken IS NOT NULL THEN
            INSERT INTO duly.doomed (child)
            SELECT DISTINCT c.id FROM unnest(children.ids) c(id)
            JOIN unnest(edges.broken) b(child) ON b.child = c.id ORDER BY c.id
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    flows := ended.flows;
    IF free IS NOT NULL THEN
        flows := flows || children.flows;
    END IF;
    flows := ARRAY(SELECT DISTINCT f.id FROM unnest(flows) f(id) WHERE f.id IS NOT NULL ORDER BY 1);
    IF cardinality(flows) > 0 THEN
        -- Who cancels a workflow holds its row: from then on none of its tasks is released.
        SELECT array_agg(w.id) FILTER (WHERE w.is_cancelled) INTO cancelled
        FROM (SELECT f.id, f.cancelled IS NOT NULL AS is_cancelled FROM duly.workflow f
              WHERE f.id = ANY (flows) ORDER BY f.id FOR NO KEY UPDATE) w;
    END IF;
    IF free IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM duly.blocked b
            USING unnest(children.ids, children.lanes, children.flows) c(id, lane, workflow),
                  unnest(free) f(id)
            WHERE c.id = f.id AND b.lane = c.lane AND b.task = c.id
              AND (c.workflow = ANY (cancelled)) IS NOT TRUE
            RETURNING b.task, coalesce(b.delay_ms, -1) AS delay)
        SELECT array_agg(g.task ORDER BY g.task), array_agg(g.delay ORDER BY g.task)
        INTO free, delays FROM gone g;
    END IF;
    IF free IS NOT NULL THEN
        IF any_plan THEN
            PERFORM duly.plan_for(free);
        END IF;
        WITH released AS (
            UPDATE duly.task t
            SET status = 1,
                run_at = CASE WHEN delays[width_bucket(t.id, free)] < 0 THEN greatest(t.run_at, at)
                              ELSE at + delays[width_bucket(t.id, free)] END
            WHERE t.id = ANY (free) AND t.id BETWEEN free[1] AND free[cardinality(free)]
              AND t.status = 0
            RETURNING t.id, t.lane, t.rank, t.run_at)
        SELECT array_agg(r.id), array_agg(r.lane), array_agg(r.rank), array_agg(r.run_at)
        INTO tasks, lanes, ranks, run_ats FROM (SELECT * FROM released ORDER BY id) r;
        INSERT INTO duly.due (lane, rank, run_at, task)
        SELECT r.lane, r.rank, r.run_at, r.id
        FROM unnest(lanes, ranks, run_ats, tasks) r(lane, rank, run_at, id)
        ON CONFLICT (lane, rank, run_at, task) DO UPDATE SET task = excluded.task;
    END IF;
    IF cardinality(flows) > 0 THEN
        PERFORM duly.count_ended_members(ended.ids, ended.statuses, ended.flows, at);
    END IF;
END
$$;

-- Counts tasks that have ended in their workflows, whose rows are locked, once per workflow. A workflow
-- without open tasks has ended: as CANCELLED if it was cancelled, as FAILED if a task failed and no edge
-- takes care of that.
CREATE OR REPLACE FUNCTION duly.count_ended_members(
    tasks uuid[], statuses smallint[], flows uuid[], at bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    empty uuid[];
BEGIN
    WITH counted AS (
        UPDATE duly.workflow w
        SET open = w.open - n.ended,
            failing = w.failing OR w.fail_fast AND n.is_unhandled,
            sweep = w.sweep OR w.fail_fast AND n.is_unhandled
        FROM (SELECT t.workflow, count(*)::integer AS ended,
                     bool_or(t.status = 4 AND NOT EXISTS (
                         SELECT FROM duly.edge e WHERE e.parent = t.id AND e.condition > 0))
                         AS is_unhandled
              FROM unnest(tasks, statuses, flows) t(id, status, workflow)
              WHERE t.workflow IS NOT NULL GROUP BY t.workflow) n
        WHERE w.id = n.workflow
        RETURNING w.id, w.open)
    SELECT array_agg(c.id) INTO empty FROM counted c WHERE c.open <= 0;
    IF empty IS NOT NULL THEN
        UPDATE duly.workflow w
        SET finished_at = at, failing = false, sweep = false,
            status = CASE WHEN w.cancelled IS NOT NULL THEN 3
                WHEN EXISTS (SELECT FROM duly.member m JOIN duly.dlq d ON d.task = m.task
                             WHERE m.workflow = w.id AND NOT EXISTS (
                                 SELECT FROM duly.edge e WHERE e.parent = m.task AND e.condition > 0))
                THEN 2 ELSE 1 END
        WHERE w.id = ANY (empty);
    END IF;
END
$$;

-- The children of ended tasks that are PENDING, for nodes that do not know of them yet.
CREATE OR REPLACE FUNCTION duly.waiting_children(
    parents uuid[],
    OUT tasks uuid[], OUT lanes integer[], OUT ranks smallint[], OUT run_ats bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    children constant uuid[] := ARRAY(
        SELECT DISTINCT e.child FROM duly.edge e WHERE e.parent = ANY (parents) ORDER BY 1);
BEGIN
    IF cardinality(children) > 0 THEN
        PERFORM duly.plan_for(children);
        SELECT array_agg(t.id), array_agg(t.lane), array_agg(t.rank), array_agg(t.run_at)
        INTO tasks, lanes, ranks, run_ats FROM duly.task t
        WHERE t.id = ANY (children)
          AND t.id BETWEEN children[1] AND children[cardinality(children)] AND t.status = 1;
    END IF;
END
$$;
