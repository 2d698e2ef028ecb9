-- Part of task_state.sql: what follows from the end of tasks that are tied to others. Their edges are
-- resolved, their children released, their workflows ended.

-- Settles tasks that this transaction has ended, whose rows it has locked. Each part of hook `ended`
-- calls it, for tasks whose `links` are not NULL. Answers with the ranges in which released children wait,
-- and when the first of each is due. A caller that knows how they ended says so: `status` is the state of
-- all of them, `known_flows` their workflows. Otherwise both are NULL. If the caller `tells` of what
-- follows, the last columns are what there is to tell: of released children, and of ended workflows.
--
-- Locks are taken in one order: tasks by their ids, parents before children, then workflows by theirs.
-- The edges are read by a statement of its own, after the parents were locked: a submit that raised the
-- links of a parent first has committed its edges by then, and the statement that ended the parent
-- could not see them. The same holds for the rows of blocked children. Children are counted down by the
-- number of their edges: two parents may end in one batch.
--
-- Unless `any_plan`, each statement is planned for its ids: a plan for any task would lock all days until
-- the end of the transaction, which may be an application's. No two arrays are joined: a plan for arrays
-- of any size would compare each item with each. A value is found by the position of its id instead, as
-- in duly.end_tasks: the sorted ids are in a record, the values in a variable.
CREATE OR REPLACE FUNCTION duly.settle_tasks(
    ids uuid[], status smallint, known_flows uuid[], at bigint, any_plan boolean, tells boolean,
    OUT lanes integer[], OUT ranks smallint[], OUT run_ats bigint[], OUT kinds smallint[],
    OUT tasks uuid[], OUT task_lanes integer[], OUT runs integer[], OUT epochs integer[],
    OUT others text[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    ended       record;
    same        smallint := status;
    statuses    smallint[];
    edges       record;
    met         integer[];
    children    record;
    flows       uuid[];
    cancelled   uuid[];
    blocked     record;
    delays      bigint[];
    released_at bigint;
    has_blocked boolean := false;
BEGIN
    IF same IS NULL THEN
        ended := duly.read_ended(ids, any_plan);
        statuses := ended.statuses;
        same := ended.same;
    ELSE
        SELECT settle_tasks.ids AS ids, array_fill(same, ARRAY[cardinality(settle_tasks.ids)]) AS statuses,
               known_flows AS flows INTO ended;
    END IF;
    WITH resolved AS (
        UPDATE duly.edge e
        SET state = CASE e.condition
                WHEN 0 THEN CASE coalesce(same, statuses[width_bucket(e.parent, ended.ids)])
                            WHEN 3 THEN 1 ELSE 2 END
                WHEN 1 THEN CASE coalesce(same, statuses[width_bucket(e.parent, ended.ids)])
                            WHEN 4 THEN 1 ELSE 2 END
                ELSE 1 END
        WHERE e.parent = ANY (ended.ids) AND e.state = 0
        RETURNING e.child, e.state)
    SELECT array_agg(c.child) AS children, array_agg(c.met) AS met,
           CASE WHEN min(c.met) = max(c.met) THEN min(c.met) END AS same_met,
           array_agg(c.child) FILTER (WHERE c.is_broken) AS broken
    INTO edges
    FROM (SELECT r.child, count(*) FILTER (WHERE r.state = 1)::integer AS met,
                 bool_or(r.state = 2) AS is_broken
          FROM resolved r GROUP BY r.child ORDER BY r.child) c;
    IF edges.children IS NOT NULL THEN
        IF any_plan THEN
            PERFORM duly.plan_for(edges.children);
        END IF;
        met := edges.met;
        SELECT array_agg(c.id) AS ids, array_agg(c.lane) AS lanes, array_agg(c.workflow) AS flows,
               array_agg(coalesce(edges.same_met, met[width_bucket(c.id, edges.children)])) AS met
        INTO children
        FROM (SELECT t.id, t.lane, t.workflow FROM duly.task t
              WHERE t.id = ANY (edges.children)
                AND t.id BETWEEN edges.children[1] AND edges.children[cardinality(edges.children)]
                AND t.status = 0
              ORDER BY t.id FOR NO KEY UPDATE) c;
        has_blocked := children.ids IS NOT NULL;
        IF edges.broken IS NOT NULL THEN
            INSERT INTO duly.doomed (child)
            SELECT b.child FROM unnest(edges.broken) b(child)
            WHERE children.ids[width_bucket(b.child, children.ids)] = b.child ORDER BY b.child
            ON CONFLICT DO NOTHING;
        END IF;
        flows := children.flows;
    END IF;
    flows := ARRAY(SELECT DISTINCT f.id FROM unnest(ended.flows || flows) f(id)
                   WHERE f.id IS NOT NULL ORDER BY 1);
    IF cardinality(flows) > 0 THEN
        -- Who cancels a workflow holds its row: from then on none of its tasks is released.
        SELECT array_agg(w.id) FILTER (WHERE w.is_cancelled) INTO cancelled
        FROM (SELECT f.id, f.cancelled IS NOT NULL AS is_cancelled FROM duly.workflow f
              WHERE f.id = ANY (flows) ORDER BY f.id FOR NO KEY UPDATE) w;
    END IF;
    IF has_blocked THEN
        SELECT array_agg(b.id) FILTER (WHERE b.is_free) AS free,
               array_agg(b.row) FILTER (WHERE b.is_free) AS free_rows,
               array_agg(b.delay) FILTER (WHERE b.is_free) AS delays,
               bool_or(b.delay >= 0) FILTER (WHERE b.is_free) AS any_delay,
               array_agg(b.id) FILTER (WHERE NOT b.is_free) AS kept,
               array_agg(b.lane) FILTER (WHERE NOT b.is_free) AS kept_lanes,
               array_agg(b.met) FILTER (WHERE NOT b.is_free) AS kept_met
        INTO blocked
        FROM (SELECT c.id, c.lane, c.met, b.ctid AS row, coalesce(b.delay_ms, -1) AS delay,
                     b.open <= c.met AND (c.workflow = ANY (cancelled)) IS NOT TRUE AS is_free
              FROM unnest(children.ids, children.lanes, children.flows, children.met)
                   c(id, lane, workflow, met)
              JOIN duly.blocked b ON b.lane = c.lane AND b.task = c.id
              WHERE c.met > 0 ORDER BY c.id) b;
        IF blocked.kept IS NOT NULL THEN
            UPDATE duly.blocked b SET open = b.open - k.met
            FROM unnest(blocked.kept, blocked.kept_lanes, blocked.kept_met) k(id, lane, met)
            WHERE b.lane = k.lane AND b.task = k.id;
        END IF;
        IF blocked.free IS NOT NULL THEN
            delays := blocked.delays;
            -- A node may have stood still since `at`, and a child is not older than its release.
            released_at := greatest(at, duly.now());
            DELETE FROM duly.blocked b WHERE b.ctid = ANY (blocked.free_rows);
            WITH released AS (
                UPDATE duly.task t
                SET status = 1,
                    run_at = CASE WHEN NOT blocked.any_delay
                                    OR delays[width_bucket(t.id, blocked.free)] < 0
                                  THEN greatest(t.run_at, at)
                                  ELSE released_at + delays[width_bucket(t.id, blocked.free)] END
                WHERE t.id = ANY (blocked.free)
                  AND t.id BETWEEN blocked.free[1] AND blocked.free[cardinality(blocked.free)]
                  AND t.status = 0
                RETURNING t.id, t.lane, t.rank, t.run_at, t.run, t.epoch),
            waiting AS (
                INSERT INTO duly.due (lane, rank, run_at, task)
                SELECT r.lane, r.rank, r.run_at, r.id FROM released r
                ON CONFLICT (lane, rank, run_at, task) DO UPDATE SET task = excluded.task)
            SELECT w.lanes, w.ranks, w.run_ats, e.kinds, e.ids, e.lanes, e.runs, e.epochs
            INTO lanes, ranks, run_ats, kinds, tasks, task_lanes, runs, epochs
            FROM (SELECT array_agg(r.lane) AS lanes, array_agg(r.rank) AS ranks,
                         array_agg(r.run_at) AS run_ats
                  FROM (SELECT r.lane, r.rank, min(r.run_at) AS run_at FROM released r
                        GROUP BY r.lane, r.rank) r) w,
                 (SELECT array_agg(1::smallint) AS kinds, array_agg(r.id) AS ids,
                         array_agg(r.lane) AS lanes, array_agg(r.run) AS runs,
                         array_agg(r.epoch) AS epochs
                  FROM released r WHERE tells) e;
        END IF;
    END IF;
    IF cardinality(flows) > 0 THEN
        others := duly.count_ended_members(ended.ids, ended.statuses, ended.flows, at);
    END IF;
END
$$;

-- What duly.settle_tasks needs to know of tasks that have ended and are tied to others, by their ids. `same`
-- is the state of all of them, if it is one.
CREATE OR REPLACE FUNCTION duly.read_ended(
    tasks uuid[], any_plan boolean,
    OUT ids uuid[], OUT statuses smallint[], OUT flows uuid[], OUT same smallint)
LANGUAGE plpgsql AS $$
DECLARE
    sorted  constant uuid[] := ARRAY(SELECT i.id FROM unnest(tasks) i(id) ORDER BY i.id);
    lowest  constant uuid   := sorted[1];
    highest constant uuid   := sorted[cardinality(sorted)];
BEGIN
    IF any_plan THEN
        PERFORM duly.plan_for(sorted);
    END IF;
    SELECT array_agg(p.id), array_agg(p.status), array_agg(p.workflow),
           CASE WHEN min(p.status) = max(p.status) THEN min(p.status) END
    INTO ids, statuses, flows, same
    FROM (SELECT t.id, t.status, t.workflow FROM duly.task t
          WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest AND t.links IS NOT NULL
          ORDER BY t.id) p;
END
$$;

-- Counts tasks that have ended in their workflows, whose rows are locked, once per workflow. A workflow
-- without open tasks has ended: as CANCELLED if it was cancelled, as FAILED if a task failed and no edge
-- takes care of that. Answers with what there is to tell of workflows that have ended.
CREATE OR REPLACE FUNCTION duly.count_ended_members(
    tasks uuid[], statuses smallint[], flows uuid[], at bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    empty uuid[];
    told  text[];
BEGIN
    WITH counted AS (
        UPDATE duly.workflow w
        SET open = w.open - n.ended, has_failed = w.has_failed OR n.is_failed,
            failing = w.failing OR w.fail_fast AND n.is_unhandled,
            sweep = w.sweep OR w.fail_fast AND n.is_unhandled
        FROM (SELECT t.workflow, count(*)::integer AS ended, bool_or(t.status = 4) AS is_failed,
                     bool_or(t.status = 4 AND NOT EXISTS (
                         SELECT FROM duly.edge e WHERE e.parent = t.id AND e.condition > 0))
                         AS is_unhandled
              FROM unnest(tasks, statuses, flows) t(id, status, workflow)
              WHERE t.workflow IS NOT NULL GROUP BY t.workflow) n
        WHERE w.id = n.workflow
        RETURNING w.id, w.open)
    SELECT array_agg(c.id) INTO empty FROM counted c WHERE c.open <= 0;
    IF empty IS NOT NULL THEN
        WITH finished AS (
            UPDATE duly.workflow w
            SET finished_at = at, failing = false, sweep = false,
                status = CASE WHEN w.cancelled IS NOT NULL THEN 3
                    WHEN w.has_failed AND EXISTS (
                                 SELECT FROM duly.member m JOIN duly.dlq d ON d.task = m.task
                                 WHERE m.workflow = w.id AND NOT EXISTS (
                                     SELECT FROM duly.edge e WHERE e.parent = m.task AND e.condition > 0))
                    THEN 2 ELSE 1 END
            WHERE w.id = ANY (empty)
            RETURNING w.id, w.tenant, w.status)
        SELECT array_agg(format('[14,%s,null,"%s",{"status":"%s","workflowId":"%s"}]', to_json(f.tenant),
                                f.id, ('{SUCCESS,FAILED,CANCELLED}'::text[])[f.status], f.id)
                         ORDER BY f.id)
        INTO told FROM finished f;
    END IF;
    RETURN told;
END
$$;

-- Where children of ended tasks are PENDING, for nodes that do not know of them yet.
CREATE OR REPLACE FUNCTION duly.waiting_children(
    parents uuid[], OUT lanes integer[], OUT ranks smallint[], OUT run_ats bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    children constant uuid[] := ARRAY(
        SELECT DISTINCT e.child FROM duly.edge e WHERE e.parent = ANY (parents) ORDER BY 1);
BEGIN
    IF cardinality(children) > 0 THEN
        PERFORM duly.plan_for(children);
        SELECT array_agg(c.lane), array_agg(c.rank), array_agg(c.run_at)
        INTO lanes, ranks, run_ats
        FROM (SELECT t.lane, t.rank, min(t.run_at) AS run_at FROM duly.task t
              WHERE t.id = ANY (children)
                AND t.id BETWEEN children[1] AND children[cardinality(children)] AND t.status = 1
              GROUP BY t.lane, t.rank) c;
    END IF;
END
$$;
