-- The ranges that a claim reads, with those in which tasks were just released that are due.
CREATE OR REPLACE FUNCTION duly.with_freed(
    who uuid, in_lanes integer[], in_ranks smallint[], in_since bigint[], freed_lanes integer[],
    freed_ranks smallint[], freed_run_ats bigint[], at bigint, all_lanes boolean,
    OUT lanes integer[], OUT ranks smallint[], OUT since bigint[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT array_agg(r.lane), array_agg(r.rank), array_agg(r.since) INTO lanes, ranks, since
    FROM (SELECT u.lane, u.rank, min(u.since) AS since
          FROM (SELECT i.lane, i.rank, i.since, true AS is_read
                FROM unnest(in_lanes, in_ranks, in_since) i(lane, rank, since)
                UNION ALL
                SELECT f.lane, f.rank, f.run_at, false
                FROM unnest(freed_lanes, freed_ranks, freed_run_ats) f(lane, rank, run_at)
                WHERE f.run_at <= at) u
          GROUP BY u.lane, u.rank
          HAVING bool_or(u.is_read) OR all_lanes AND EXISTS (
              SELECT FROM duly.session s JOIN duly.lane l ON l.id = u.lane
              WHERE s.id = who AND l.type = ANY (s.types)
                AND (cardinality(s.queues) = 0 OR l.queue = ANY (s.queues))
                AND (s.tenant IS NULL OR s.tenant = l.tenant))) r;
END
$$;

-- Ends successes of a session and grants it due tasks of these ranges, in one call. `asked` is the
-- number of its claim; without one nothing is granted. `done` are the successes that were committed,
-- `heads` is where each of the ranges starts now. Unless `careful`, the call fails with DU001 if a
-- payload is so large that the batch could exceed `byte_limit`: to read the sizes of all payloads
-- first costs a tenth of a claim, and mostly they are small. `heavy` says whether there was a large one.
-- `picky` says that quarantined tasks restrict what the session may be granted, `held` whether it holds
-- leases (only known where quarantined tasks matter), `echo` that this claim was granted before.
-- Tasks that the successes release are granted too if they are due: those of the ranges, and of all lanes
-- that the session serves if the claim asks for `all_lanes`. `freed_*` say where the others wait.
-- Eleven columns are those of duly.parents, for the granted tasks that have parents. They are NULL if
-- there is none, or if these have more than `few_edges` edges: to read many would delay the commit. `told`
-- says whether events were written: those of both parts, in one row.
CREATE OR REPLACE FUNCTION duly.exchange(
    who uuid, ended uuid[], ended_epochs integer[], results text[], ran integer[], asked bigint,
    wanted integer, in_lanes integer[], in_ranks smallint[], since bigint[], byte_limit bigint,
    ageing bigint, default_timeout integer, slack integer, careful boolean, all_lanes boolean,
    parent_bytes bigint, few_edges integer,
    OUT at bigint, OUT done uuid[], OUT is_open boolean, OUT held boolean, OUT picky boolean,
    OUT echo boolean, OUT paused_tenants text[], OUT paused_queues text[], OUT heads bigint[],
    OUT tasks uuid[], OUT epochs integer[], OUT runs integer[], OUT charges integer[],
    OUT retries integer[], OUT timeouts integer[], OUT lanes integer[], OUT run_ats bigint[],
    OUT granted_ats bigint[], OUT payloads text[], OUT links integer[], OUT heavy boolean,
    OUT freed_lanes integer[], OUT freed_ranks smallint[], OUT freed_run_ats bigint[],
    OUT edge_children uuid[], OUT edge_parents uuid[], OUT edge_conditions smallint[],
    OUT edge_states smallint[], OUT kin uuid[], OUT kin_statuses smallint[], OUT kin_sizes integer[],
    OUT kin_results text[], OUT kin_errors text[], OUT kin_workflows uuid[], OUT kin_keys text[],
    OUT told boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    s         record;
    children  uuid[];
    latest    bigint;
    o_lanes   integer[] := in_lanes;
    o_ranks   smallint[] := in_ranks;
    o_since   bigint[] := since;
    batch     record;
    ends      record;
    sequences bigint[];
    external  record;
    freed     record;
    telling   integer;
    of_ends   boolean;
    -- What there is to tell.
    e_kinds   smallint[];
    e_tasks   uuid[];
    e_lanes   integer[];
    e_runs    integer[];
    e_epochs  integer[];
    e_others  text[];
    rows      tid[];
    picked    uuid[];
    waits     uuid;
    is_alone  boolean;
    is_cut    boolean;
    -- Payloads of this size always fit.
    small     bigint := byte_limit / greatest(wanted, 1);
BEGIN
    at := duly.now();
    echo := false;
    told := false;
    SELECT w.kinds INTO telling FROM duly.wanted_kinds w;
    IF asked IS NULL THEN
        SELECT newest, alone, waits_for INTO s
        FROM duly.session WHERE id = who AND ended_at IS NULL;
    ELSE
        SELECT newest, alone, waits_for INTO s
        FROM duly.session WHERE id = who AND ended_at IS NULL FOR NO KEY UPDATE;
    END IF;
    is_open := FOUND;
    IF cardinality(ended) > 0 THEN
        -- Bit 8 is task.succeeded.
        of_ends := coalesce(telling & 256 <> 0, false);
        ends := duly.end_tasks(who, ended, ended_epochs, results, ran, at, of_ends);
        done := ends.done;
        sequences := ends.sequences;
        IF of_ends AND done IS NOT NULL THEN
            e_kinds := array_fill(8::smallint, ARRAY[cardinality(done)]);
            e_tasks := done;
            e_lanes := ends.lanes;
            e_runs := ends.runs;
            e_epochs := ends.done_epochs;
        END IF;
        IF ends.linked IS NOT NULL THEN
            -- Bit 1 is task.unblocked, bit 14 is workflow.ended.
            freed := duly.settle_tasks(ends.linked, 3::smallint, ends.flows, at, true,
                                       coalesce(telling & 16386 <> 0, false));
            e_kinds := e_kinds || freed.kinds;
            e_tasks := e_tasks || freed.tasks;
            e_lanes := e_lanes || freed.task_lanes;
            e_runs := e_runs || freed.runs;
            e_epochs := e_epochs || freed.epochs;
            e_others := freed.others;
            freed_lanes := freed.lanes;
            freed_ranks := freed.ranks;
            freed_run_ats := freed.run_ats;
        END IF;
        IF coalesce(cardinality(done), 0) < cardinality(ended) THEN
            external := duly.acknowledge_external_finishes(who, ended, ended_epochs);
            sequences := sequences || external.sequences;
            -- Their transactions have notified no node.
            IF external.linked IS NOT NULL AND freed_lanes IS NULL THEN
                freed := duly.waiting_children(external.linked);
                freed_lanes := freed.lanes;
                freed_ranks := freed.ranks;
                freed_run_ats := freed.run_ats;
            END IF;
        END IF;
        PERFORM duly.end_batch_leases(array_agg(who), array_agg(n.sequence), array_agg(n.ended), true)
        FROM (SELECT q.sequence, count(*)::integer AS ended FROM unnest(sequences) q(sequence)
              GROUP BY 1 ORDER BY 1) n;
    END IF;
    SELECT array_agg(p.tenant), array_agg(p.queue) INTO paused_tenants, paused_queues
    FROM duly.pause p;
    <<claiming>>
    BEGIN
        IF NOT is_open THEN
            EXIT claiming;
        END IF;
        picky := s.alone OR s.waits_for IS NOT NULL;
        -- Only quarantined tasks make it matter.
        IF picky OR 10 <= ANY (in_ranks) THEN
            held := duly.holds(who);
        END IF;
        IF asked IS NULL THEN
            EXIT claiming;
        END IF;
        latest := duly.newest(who, s.newest);
        IF NOT duly.admits(who, latest, asked) THEN
            echo := true;
            UPDATE duly.grant_log g SET served_at = at WHERE g.session = who AND g.sequence = asked
            RETURNING g.tasks INTO batch;
            PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
            SELECT array_agg(t.id), array_agg(t.epoch), array_agg(t.run), array_agg(t.charged),
                   array_agg(t.retries), array_agg(t.timeout_ms), array_agg(t.lane),
                   array_agg(t.run_at), array_agg(t.granted_at), array_agg(t.payload),
                   array_agg(t.links)
            INTO tasks, epochs, runs, charges, retries, timeouts, lanes, run_ats, granted_ats, payloads,
                 links
            FROM (SELECT t.* FROM duly.task t
                  WHERE t.id = ANY (batch.tasks) AND t.session = who AND t.sequence = asked
                    AND t.status = 2
                  ORDER BY array_position(batch.tasks, t.id)) t;
            EXIT claiming;
        END IF;
        is_alone := s.alone AND held;
        IF freed_lanes IS NOT NULL THEN
            SELECT w.lanes, w.ranks, w.since INTO o_lanes, o_ranks, o_since
            FROM duly.with_freed(who, in_lanes, in_ranks, since, freed_lanes, freed_ranks, freed_run_ats,
                                 at, all_lanes) w;
        END IF;
        IF paused_tenants IS NOT NULL THEN
            SELECT array_agg(r.lane), array_agg(r.rank), array_agg(r.since)
            INTO o_lanes, o_ranks, o_since
            FROM unnest(o_lanes, o_ranks, o_since) r(lane, rank, since)
            WHERE NOT EXISTS (
                SELECT FROM duly.lane n
                JOIN duly.pause p ON p.tenant = n.tenant AND p.queue IN (n.queue, '')
                WHERE n.id = r.lane);
        END IF;
        IF wanted > 0 AND NOT is_alone AND cardinality(o_lanes) > 0 THEN
            IF 10 <= ANY (o_ranks) THEN
                SELECT p.rows, p.tasks, p.waits, p.is_alone INTO rows, picked, waits, is_alone
                FROM duly.pick_with_quarantine(who, o_lanes, o_ranks, o_since, wanted, at, ageing,
                                               NOT held) p;
            ELSE
                SELECT p.rows, p.tasks, p.starts INTO rows, picked, heads
                FROM duly.pick(o_lanes, o_ranks, o_since, at, wanted, ageing) p;
            END IF;
            -- They are those of other ranges.
            IF paused_tenants IS NOT NULL OR freed_lanes IS NOT NULL THEN
                heads := NULL;
            END IF;
        END IF;
        IF careful AND picked IS NOT NULL THEN
            SELECT f.rows, f.tasks, f.is_cut INTO rows, picked, is_cut
            FROM duly.fit_in_bytes(rows, picked, byte_limit, ageing) f;
            IF is_cut THEN
                heads := NULL;
            END IF;
        END IF;
        IF picked IS NOT NULL THEN
            DELETE FROM duly.due d WHERE d.ctid = ANY (rows);
            SELECT g.tasks, g.epochs, g.runs, g.charges, g.retries, g.timeouts, g.lanes, g.run_ats,
                   g.granted_ats, g.payloads, g.links, g.heavy
            INTO tasks, epochs, runs, charges, retries, timeouts, lanes, run_ats, granted_ats, payloads,
                 links, heavy
            FROM duly.grant_tasks(who, asked, picked, o_lanes, at, ageing, default_timeout, slack, small,
                                  careful) g;
            IF heavy AND NOT careful THEN
                RAISE EXCEPTION 'the payloads could be too large for one batch' USING ERRCODE = 'DU001';
            END IF;
            -- Bit 2 is task.started.
            IF telling & 4 <> 0 AND tasks IS NOT NULL THEN
                e_kinds := e_kinds || array_fill(2::smallint, ARRAY[cardinality(tasks)]);
                e_tasks := e_tasks || tasks;
                e_lanes := e_lanes || lanes;
                e_runs := e_runs || runs;
                e_epochs := e_epochs || epochs;
            END IF;
        END IF;
        -- Bit 1 of `links` says that a task has parents.
        IF cardinality(tasks) <= few_edges AND array_remove(links, NULL) <> '{}' THEN
            children := ARRAY(SELECT c.id FROM unnest(tasks, links) c(id, links) WHERE c.links & 1 = 1);
            IF cardinality(children) > 0 THEN
                SELECT p.* INTO edge_children, edge_parents, edge_conditions, edge_states, kin, kin_statuses,
                                kin_sizes, kin_results, kin_errors, kin_workflows, kin_keys
                FROM duly.parents(children, parent_bytes, few_edges) p;
            END IF;
        END IF;
        IF freed_lanes IS NOT NULL AND tasks IS NOT NULL THEN
            SELECT array_agg(w.lane), array_agg(w.rank), array_agg(w.run_at)
            INTO freed_lanes, freed_ranks, freed_run_ats
            FROM (SELECT f.lane, f.rank,
                         (SELECT d.run_at FROM duly.due d
                          WHERE d.lane = f.lane AND d.rank = f.rank AND d.run_at >= f.run_at
                          ORDER BY d.run_at LIMIT 1) AS run_at
                  FROM unnest(freed_lanes, freed_ranks, freed_run_ats) f(lane, rank, run_at)) w
            WHERE w.run_at IS NOT NULL;
        END IF;
        is_alone := is_alone AND (held OR tasks IS NOT NULL);
        picky := is_alone OR waits IS NOT NULL;
        -- The row of a batch says which claim it belongs to.
        IF (s.alone, s.waits_for) IS DISTINCT FROM (is_alone, waits) OR tasks IS NULL AND latest < asked THEN
            UPDATE duly.session SET newest = asked, alone = is_alone, waits_for = waits WHERE id = who;
        END IF;
        IF latest < asked THEN
            PERFORM duly.forget_before(who, asked);
        END IF;
        held := held OR tasks IS NOT NULL;
        IF heads IS NULL THEN
            heads := ARRAY(
                SELECT (SELECT d.run_at FROM duly.due d
                        WHERE d.lane = r.lane AND d.rank = r.rank AND d.run_at >= r.since
                        ORDER BY d.run_at LIMIT 1)
                FROM unnest(in_lanes, in_ranks, since) WITH ORDINALITY r(lane, rank, since, n)
                ORDER BY r.n);
        END IF;
    END claiming;
    IF e_kinds IS NOT NULL OR e_others IS NOT NULL THEN
        told := duly.tell(at, e_kinds, e_tasks, e_lanes, e_runs, e_epochs, e_others);
    END IF;
END
$$;
