-- Lists of tasks are in the order of ids; those that ask for FAILED ones alone read them from here,
-- and find queue, type and group without a look at the task.
CREATE INDEX dlq_task ON dlq (task, lane, error_group);
