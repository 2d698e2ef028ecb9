-- The only SQL that writes duly.task; `src/postgres/task_state.rs` is its other half and lists the six
-- hooks: stored, granted, waiting, ended, replayed, deleted. A feature that follows the state of tasks
-- attaches to the function of a hook, once per batch, in the transaction of the verb that calls it.

-- Hook `stored`: inserts new tasks, whose ids come sorted. Tasks with `handed[n]` are granted at once
-- to session `who` under its claim `asked` (a hand-off); `handed` is NULL if none is. The others wait.
-- Answers whether events were written. Runs in the transaction of the submit, which is the application's
-- own for duly.submit.
-- Arrays are read by index: to unnest eleven columns costs a tenth of a submit.
CREATE OR REPLACE FUNCTION duly.store_tasks(
    ids uuid[], run_ats bigint[], lanes integer[], ranks smallint[], retries integer[],
    timeouts integer[], back_offs text[], labels text[], payloads text[], at bigint, who uuid,
    asked bigint, handed boolean[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    wanted integer;
BEGIN
    INSERT INTO duly.task (id, run_at, created_at, granted_at, session, sequence, epoch, lane, run,
                           charged, retries, losses, timeout_ms, status, rank, back_off, labels,
                           payload)
    SELECT ids[n], run_ats[n], at,
           CASE WHEN handed[n] THEN at END, CASE WHEN handed[n] THEN who END,
           CASE WHEN handed[n] THEN asked END, CASE WHEN handed[n] THEN 1 ELSE 0 END,
           lanes[n], 1, 0, retries[n], 0, timeouts[n],
           CASE WHEN handed[n] THEN 2 ELSE 1 END, ranks[n], back_offs[n], labels[n], payloads[n]
    FROM generate_series(1, cardinality(ids)) n;
    INSERT INTO duly.due (lane, rank, run_at, task)
    SELECT lanes[n], ranks[n], run_ats[n], ids[n]
    FROM generate_series(1, cardinality(ids)) n
    WHERE handed[n] IS NOT TRUE;
    SELECT w.kinds INTO wanted FROM duly.wanted_kinds w;
    -- Bit 0 is task.created, bit 2 is task.started.
    RETURN CASE WHEN wanted & 5 <> 0 THEN duly.tell_of_new(ids, lanes, handed, at) ELSE false END;
END
$$;

-- Hook `granted`: leases those of the candidates that are PENDING, due and in one of `in_lanes` to
-- session `who` under its claim `asked`. The others are left as they are. The caller has taken the
-- candidates out of their source: duly.pick finds them in duly.due, but any other source will do.
-- Answers with the granted tasks in the order of claims. A payload that is larger than `small` is left
-- out and reported by `heavy`, unless `any_size`. Runs in the transaction of the exchange.
CREATE OR REPLACE FUNCTION duly.grant_tasks(
    who uuid, asked bigint, candidates uuid[], in_lanes integer[], at bigint, ageing bigint,
    default_timeout integer, slack integer, small bigint, any_size boolean,
    OUT tasks uuid[], OUT epochs integer[], OUT runs integer[], OUT charges integer[],
    OUT retries integer[], OUT timeouts integer[], OUT lanes integer[], OUT run_ats bigint[],
    OUT granted_ats bigint[], OUT payloads text[], OUT links integer[], OUT heavy boolean)
LANGUAGE plpgsql AS $$
DECLARE
    sorted  constant uuid[] := ARRAY(SELECT c.id FROM unnest(candidates) c(id) ORDER BY c.id);
    lowest  constant uuid   := sorted[1];
    highest constant uuid   := sorted[cardinality(sorted)];
BEGIN
    PERFORM duly.plan_for(sorted);
    -- The lane is compared inside of a function call, so that no plan looks for it in an index.
    WITH granted AS (
        UPDATE duly.task t
        SET status = 2, epoch = t.epoch + 1, session = who, sequence = asked, granted_at = at,
            deadline_or_start = NULL
        WHERE t.id = ANY (sorted) AND t.id BETWEEN lowest AND highest
          AND t.status = 1 AND t.run_at <= at AND array_position(in_lanes, t.lane) IS NOT NULL
        RETURNING t.id, t.epoch, t.run, t.charged, t.retries, t.timeout_ms, t.lane, t.run_at,
                  t.rank, t.payload, t.links)
    SELECT array_agg(t.id), array_agg(t.epoch), array_agg(t.run), array_agg(t.charged),
           array_agg(t.retries), array_agg(t.timeout_ms), array_agg(t.lane),
           array_agg(t.run_at), array_agg(at),
           array_agg(CASE WHEN any_size OR octet_length(t.payload) <= small THEN t.payload END),
           array_agg(t.links), coalesce(bool_or(octet_length(t.payload) > small), false)
    INTO tasks, epochs, runs, charges, retries, timeouts, lanes, run_ats, granted_ats, payloads,
         links, heavy
    FROM (SELECT * FROM granted g ORDER BY g.run_at + g.rank % 10 * ageing, g.id) t;
    IF tasks IS NOT NULL THEN
        PERFORM duly.record_grant(who, asked, at, tasks, epochs, timeouts, default_timeout, slack);
    END IF;
END
$$;

-- Hook `ended`, for successes that a session reports: ends those of its tasks `ended` that it still
-- holds under these epochs. The ids come sorted. `ran` is how many milliseconds each handler ran, if
-- its worker says so. `done` are the tasks that have ended, `sequences` the claims that they came
-- with, `linked` those that are to be settled. If the caller `tells` of them, the last three columns are
-- what there is to tell. Runs in the transaction of the exchange.
-- Mostly all of them are first grants. A result is found by its position among the ids: a join would
-- be planned again for every size of every day, and sometimes as a scan. The ids are in a record and
-- the results in a variable, since the former are searched as they are and the latter are read by
-- index.
CREATE OR REPLACE FUNCTION duly.end_tasks(
    who uuid, ended uuid[], epochs integer[], results text[], ran integer[], at bigint, tells boolean,
    OUT done uuid[], OUT sequences bigint[], OUT linked uuid[], OUT flows uuid[], OUT lanes integer[],
    OUT runs integer[], OUT done_epochs integer[])
LANGUAGE plpgsql AS $$
DECLARE
    same  record;
    texts text[];
    times integer[];
    part  record;
BEGIN
    FOR same IN
        SELECT epochs[1] AS epoch, ended AS ids, results AS results, ran AS ran
        WHERE epochs[1] = ALL (epochs)
        UNION ALL
        SELECT e.epoch, array_agg(e.id ORDER BY e.id), array_agg(e.result ORDER BY e.id),
               array_agg(e.ran ORDER BY e.id)
        FROM unnest(ended, epochs, results, ran) e(id, epoch, result, ran)
        WHERE NOT epochs[1] = ALL (epochs) GROUP BY e.epoch
    LOOP
        PERFORM duly.plan_for(same.ids);
        texts := same.results;
        times := same.ran;
        WITH finished AS (
            UPDATE duly.task t
            SET status = 3, finished_at = at, charged = t.charged + 1, error = NULL,
                result = texts[width_bucket(t.id, same.ids)],
                deadline_or_start = CASE WHEN times[width_bucket(t.id, same.ids)] IS NOT NULL THEN
                    greatest(t.granted_at, at - times[width_bucket(t.id, same.ids)]) END
            WHERE t.id = ANY (same.ids)
              AND t.id BETWEEN same.ids[1] AND same.ids[cardinality(same.ids)]
              AND t.epoch = same.epoch AND t.session = who
              AND t.status = 2
            RETURNING t.id, t.sequence, t.links, t.workflow, t.lane, t.run, t.epoch)
        SELECT array_agg(f.id) AS ids, array_agg(f.sequence) AS sequences,
               array_agg(f.lane) FILTER (WHERE tells) AS lanes,
               array_agg(f.run) FILTER (WHERE tells) AS runs,
               array_agg(f.epoch) FILTER (WHERE tells) AS epochs,
               array_agg(f.id) FILTER (WHERE f.links IS NOT NULL) AS linked,
               array_agg(f.workflow) FILTER (WHERE f.links IS NOT NULL) AS flows
        INTO part FROM finished f;
        done := done || part.ids;
        sequences := sequences || part.sequences;
        linked := linked || part.linked;
        flows := flows || part.flows;
        lanes := lanes || part.lanes;
        runs := runs || part.runs;
        done_epochs := done_epochs || part.epochs;
    END LOOP;
END
$$;

-- Hook `ended`, for one success in the transaction of a handler: ends the task if the lease still
-- lives; answers whether it does. The batch of the lease, which other leases share, is not written:
-- `sequence` is complemented until the worker reports the outcome, see
-- duly.acknowledge_external_finishes. Runs in the handler's transaction, with a plan for this one task:
-- a plan for any task would lock all days until that transaction ends.
CREATE OR REPLACE FUNCTION duly.end_task_externally(
    task uuid, epoch integer, session uuid, result text) RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_variable
DECLARE
    at       constant bigint := duly.now();
    ended    record;
    released record;
    wanted   integer;
BEGIN
    UPDATE duly.task t
    SET status = 3, finished_at = at, charged = t.charged + 1, error = NULL, result = result,
        sequence = ~t.sequence
    WHERE t.id = task AND t.epoch = epoch AND t.session = session AND t.status = 2
    RETURNING t.links, t.workflow, t.lane, t.run INTO ended;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT w.kinds INTO wanted FROM duly.wanted_kinds w;
    -- Bit 8 is task.succeeded; the other two are what a settlement tells of.
    IF wanted & 256 <> 0 THEN
        PERFORM duly.tell(at, ARRAY[8::smallint], ARRAY[task], ARRAY[ended.lane], ARRAY[ended.run],
                          ARRAY[epoch], NULL);
    END IF;
    IF ended.links IS NOT NULL THEN
        released := duly.settle_tasks(ARRAY[task], 3::smallint, ARRAY[ended.workflow], at, false,
                                      coalesce(wanted & 16386 <> 0, false));
        IF released.kinds IS NOT NULL OR released.others IS NOT NULL THEN
            PERFORM duly.tell(at, released.kinds, released.tasks, released.task_lanes, released.runs,
                              released.epochs, released.others);
        END IF;
    END IF;
    RETURN true;
END
$$;

-- The session reports the outcomes of these leases, and the transactions of handlers have ended some of
-- them already. Answers with the claims that those came with, for each lease once, and with those that
-- are tied to others. The ids come sorted.
CREATE OR REPLACE FUNCTION duly.acknowledge_external_finishes(
    who uuid, ended uuid[], epochs integer[], OUT sequences bigint[], OUT linked uuid[])
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM duly.plan_for(ended);
    WITH written AS (
        UPDATE duly.task t SET sequence = ~t.sequence
        WHERE t.id = ANY (ended) AND t.id BETWEEN ended[1] AND ended[cardinality(ended)]
          AND t.epoch = epochs[width_bucket(t.id, ended)]
          AND t.session = who AND t.sequence < 0
        RETURNING t.id, t.sequence, t.links)
    SELECT array_agg(w.sequence), array_agg(w.id) FILTER (WHERE w.links IS NOT NULL)
    INTO sequences, linked FROM written w;
END
$$;

-- Hook `deleted`, for all tasks of a day, counted from 1970: drops its partition. Runs in the
-- transaction of the sweep, which has checked that all of them may go and holds the day's lock, see
-- duly.keep_days. It runs with the rights of the owner of the tables, so that a node need not own them.
CREATE OR REPLACE FUNCTION duly.drop_day(day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('DROP TABLE duly.%I', 'task_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'));
END
$$;
