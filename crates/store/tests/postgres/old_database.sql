-- Tasks in every state, as nodes of the schema's version 10 leave them, each in a queue that is named
-- after its state. The session is still open and holds the task that runs.
INSERT INTO duly.session (id, name, types, queues, opened_at)
VALUES ('00000000-0000-7000-8000-000000000001', 'old', '{email}', '{}', duly.now());

SELECT duly.submit('email', queue => q)
FROM unnest('{due,running,success,finished-externally,failed,cancelled,back-off,quarantined}'::text[]) q;
SELECT duly.submit('email', queue => 'future', delay => '1 hour');

CREATE TEMPORARY VIEW named AS
    SELECT l.queue, t.id, t.lane FROM duly.task t JOIN duly.lane l ON l.id = t.lane;

SELECT duly.exchange('00000000-0000-7000-8000-000000000001', '{}', '{}', '{}', 1, 10,
                     array_agg(lane), array_agg(4::smallint), array_agg(0::bigint), 1000000, 60000,
                     60000, 5000, true)
FROM named WHERE queue IN ('running', 'success', 'finished-externally');

SELECT duly.exchange('00000000-0000-7000-8000-000000000001', ARRAY[id], '{1}', '{"1"}', NULL, 0,
                     '{}', '{}', '{}', 1000000, 60000, 60000, 5000, true)
FROM named WHERE queue = 'success';

SELECT duly.finish(id, 1, '00000000-0000-7000-8000-000000000001', '2')
FROM named WHERE queue = 'finished-externally';

-- What nodes write themselves.
DELETE FROM duly.due d USING named n WHERE n.id = d.task AND n.queue IN ('failed', 'cancelled');
UPDATE duly.task t
SET status = 4, epoch = 4, charged = 4, finished_at = duly.now(),
    error = '{"code":"E","message":"no"}'
FROM named n WHERE n.id = t.id AND n.queue = 'failed';
INSERT INTO duly.dlq (task, failed_at, lane, error_group)
SELECT id, duly.now(), lane, 7 FROM named WHERE queue = 'failed';
INSERT INTO duly.attempt (task, epoch, run, attempt, started_at, ended_at, error)
SELECT id, 4, 1, 4, duly.now(), duly.now(), '{"code":"E","message":"no"}'
FROM named WHERE queue = 'failed';
UPDATE duly.task t SET status = 5, finished_at = duly.now(),
                       error = '{"code":"CANCELLED","message":"over"}'
FROM named n WHERE n.id = t.id AND n.queue = 'cancelled';
UPDATE duly.task t SET epoch = 1, charged = 1, run_at = duly.now() + 600000,
                       error = '{"code":"E","message":"no"}'
FROM named n WHERE n.id = t.id AND n.queue = 'back-off';
UPDATE duly.due d SET run_at = duly.now() + 600000 FROM named n
WHERE n.id = d.task AND n.queue = 'back-off';
UPDATE duly.task t SET epoch = 2, losses = 2, rank = 14
FROM named n WHERE n.id = t.id AND n.queue = 'quarantined';
UPDATE duly.due d SET rank = 14 FROM named n WHERE n.id = d.task AND n.queue = 'quarantined';
DROP VIEW named;
