-- Finish for handlers: in their own transaction, so that what they have done and the outcome of the task
-- are committed together or not at all.

-- Commits a success under this lease, if it still lives; raises otherwise, so that nothing else in the
-- transaction can be committed either. The batch of the lease, which others share, is left alone: it is
-- told when the worker reports the outcome.
CREATE FUNCTION duly.finish(task uuid, epoch integer, session uuid, result json DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_variable
DECLARE
    body constant text := btrim(result::text, E' \t\n\r');
    code text := 'LEASE_LOST';
BEGIN
    PERFORM duly.check_json('result', body, 1048576, 'RESULT_TOO_LARGE');
    UPDATE duly.task t
    SET status = 3, finished_at = duly.now(), charged = t.charged + 1, error = NULL, result = body,
        sequence = ~t.sequence
    WHERE t.id = task AND t.epoch = epoch AND t.session = session AND t.status = 2;
    IF FOUND THEN
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

REVOKE ALL ON FUNCTION duly.finish FROM PUBLIC;

-- `duly migrate up` tells what is missing.
SELECT duly.grant_rights();
