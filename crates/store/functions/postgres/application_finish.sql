-- Finish for handlers: in their own transaction, so that their effects and the outcome of the task are
-- committed together or not at all.

-- Commits a success under this lease, if it still lives; raises otherwise, so that nothing else in the
-- transaction can be committed either.
CREATE OR REPLACE FUNCTION duly.finish(task uuid, epoch integer, session uuid, result json DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_variable
DECLARE
    body constant text := btrim(result::text, E' \t\n\r');
    code text := 'LEASE_LOST';
BEGIN
    PERFORM duly.check_json('result', body, 1048576, 'RESULT_TOO_LARGE');
    IF duly.end_task_externally(task, epoch, session, body) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM duly.task t WHERE t.id = task AND t.epoch = epoch
                 AND t.session = session AND t.status = 3)
    THEN
        code := 'ALREADY_FINISHED';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', CONSTRAINT = code,
        MESSAGE = CASE code
            WHEN 'LEASE_LOST' THEN 'the lease of task ' || task || ' was taken back'
            ELSE 'task ' || task || ' was finished under this lease before' END,
        HINT = 'Roll back: what this transaction has done is done under another lease, or was.';
END
$$;
