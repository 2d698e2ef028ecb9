//! Every bound of the system in one place. A queue, batch, payload, page or wait without a limit
//! is a fault waiting for load.

use std::time::Duration;

/// Characters of a type or queue name.
pub const NAME_CHARS: usize = 100;
/// Bytes of one task's payload as JSON text.
pub const PAYLOAD_BYTES: usize = 1024 * 1024;
/// Bytes of one task's result as JSON text; a larger one fails the attempt.
pub const RESULT_BYTES: usize = 1024 * 1024;
/// Nesting of a JSON value: deeper ones break the parsers of those who read them back.
pub const JSON_DEPTH: usize = 64;
/// Bytes of an error message kept for an attempt; the rest is cut.
pub const ERROR_BYTES: usize = 4 * 1024;
/// Characters of the reason for a cancellation.
pub const REASON_CHARS: usize = 500;
/// Labels on one task.
pub const LABELS: usize = 32;
/// Characters of a label's key or value.
pub const LABEL_CHARS: usize = 200;
/// Characters of an idempotency key.
pub const IDEMPOTENCY_KEY_CHARS: usize = 255;
/// How long an idempotency key is remembered.
pub const IDEMPOTENCY_KEY_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The most retries a task may ask for.
pub const RETRIES: u32 = 1000;
/// Retries of a task that does not say.
pub const DEFAULT_RETRIES: u32 = 3;
/// The longest wait between two attempts.
pub const BACK_OFF: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The largest factor by which waits grow.
pub const BACK_OFF_FACTOR: u32 = 100;
/// The longest time over which starts may be spread.
pub const JITTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The highest priority; it runs first.
pub const PRIORITY: u8 = 9;
/// Priority of a task that does not say.
pub const DEFAULT_PRIORITY: u8 = 5;
/// How much earlier one level of priority makes a task in the order of claims. An older task of
/// a lower level therefore overtakes a newer one of a higher level in the end: no task starves.
pub const AGEING_PER_LEVEL: Duration = Duration::from_secs(60);
/// How far ahead a task may be scheduled.
pub const RUN_AHEAD: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// The longest a handler may be allowed to run.
pub const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a handler may run when its task does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Lost leases after which a task is failed, unless configured: it probably kills its worker.
pub const LOSSES: u32 = 10;
/// The most lost leases that may be allowed.
pub const LOSS_LIMIT: u32 = 1_000;
/// Lost leases from which on a task is quarantined: it is granted alone.
pub const QUARANTINE_LOSSES: u32 = 2;
/// Failed and lost attempts kept for one task; older ones are forgotten.
pub const ATTEMPTS: usize = 100;
/// Bytes of an attempt's log kept at the least: its end. What is older is dropped piece by piece.
pub const LOG_BYTES: usize = 64 * 1024;
/// Bytes up to which pieces of a log that follow each other are stored as one.
pub const LOG_PIECE_BYTES: usize = 4 * 1024;
/// Pieces of an attempt's log that are kept: its last. Only a log with holes has as many.
pub const LOG_PIECES: usize = 256;
/// Bytes that a piece of a log counts for in one answer beyond its text.
pub const LOG_PIECE_OVERHEAD: usize = 128;
/// Bytes of an attempt's log shown in the list of attempts: its end.
pub const LOG_EXCERPT_BYTES: usize = 8 * 1024;
/// Bytes of logs in one answer when the caller does not say.
pub const DEFAULT_LOG_PAGE_BYTES: usize = 256 * 1024;
/// Bytes of logs in one answer at the most.
pub const LOG_PAGE_BYTES: usize = 1024 * 1024;
/// Characters of the message that goes with an attempt's progress.
pub const MESSAGE_CHARS: usize = 500;
/// Bytes of an attempt's note for its next attempt, as JSON text.
pub const CHECKPOINT_BYTES: usize = 64 * 1024;
/// The most steps or bytes that can be counted: more is not exact in every reader of JSON.
pub const COUNT: u64 = 9_007_199_254_740_991;
/// How often a worker sends reports, at the most.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a worker may be silent before its session is taken for dead, unless configured.
pub const SESSION_TTL: Duration = Duration::from_secs(10);
/// How long a session that has ended is remembered. After that, tasks and attempts that it worked on
/// no longer tell the name of their worker.
pub const SESSION_MEMORY: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How long entries of the audit log are kept.
pub const AUDIT_MEMORY: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Entries of the audit log that are newer stay, whatever else is asked for.
pub const AUDIT_FLOOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a node that fell silent is still listed.
pub const NODE_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time a lease has beyond its task's timeout, for a worker that keeps the timeout itself.
pub const DEADLINE_SLACK: Duration = Duration::from_secs(10);
/// Types or queues that one session may name.
pub const SESSION_NAMES: usize = 1_000;
/// Characters of the name that a worker gives itself.
pub const WORKER_CHARS: usize = 200;
/// Open sessions of remote workers.
pub const SESSIONS: usize = 10_000;
/// Groups of dead letters in one answer.
pub const DEAD_GROUPS: u32 = 100;
/// Dead letters that are looked at to count groups, the last failures first.
pub const DEAD_GROUP_ROWS: u32 = 50_000;
/// Items in one `POST /tasks/batch`.
pub const BATCH_ITEMS: usize = 10_000;
/// Bytes of one `POST /tasks/batch`.
pub const BATCH_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of any other request body: a payload and the fields around it.
pub const BODY_BYTES: usize = PAYLOAD_BYTES + 64 * 1024;
/// Tasks in one call of the store.
pub const STORE_BATCH: usize = 1_000;
/// Bytes of payload in one call of the store, so that one commit stays short.
pub const STORE_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Submissions that may wait for the store before callers are told to come back.
pub const SUBMIT_QUEUE: usize = 16_384;
/// Bytes of payload that may wait for the store before callers are told to come back.
pub const SUBMIT_QUEUE_BYTES: usize = 128 * 1024 * 1024;
/// Distinct (tenant, queue, type): bounded, since every node keeps them all in memory.
pub const LANES: usize = 100_000;
/// Lanes that one wake-up names; beyond that it goes to every worker.
pub const HINT_LANES: usize = 16;
/// Tasks on one page of a list when the caller does not say.
pub const DEFAULT_PAGE: u32 = 50;
/// The most tasks on one page of a list.
pub const PAGE: u32 = 200;
/// Payloads and results on one page of a list, about: a page of large tasks is shorter.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Tasks that one page of a list looks at, whether or not they match its filter.
pub const SCAN_ROWS: u32 = 10_000;
/// Tasks that one order may name.
pub const BULK_IDS: usize = 10_000;
/// Tasks of one step of an order for many; a step is one commit.
pub const BULK_STEP: u32 = 500;
/// Tasks of one step that deletes: each may have much about it.
pub const BULK_DELETE_STEP: u32 = 100;
/// How long a replay or purge of dead letters waits for its bulk action before it answers.
pub const BULK_WAIT: Duration = Duration::from_secs(10);
/// Tasks that are counted before an order begins; of more it does not know the total.
pub const BULK_COUNT: u64 = 1_000_000;
/// Rows counted for one number about a queue; beyond that it says "at least".
pub const COUNT_ROWS: u32 = 10_000;
/// The same where many queues are shown at once.
pub const LIST_COUNT_ROWS: u32 = 1_000;
/// Lanes of one queue that its numbers are counted in, by type; and lanes after which a page of
/// queues ends.
pub const QUEUE_LANES: usize = 1_000;
/// Leases that are looked at to count what runs.
pub const COUNT_LEASES: u32 = 50_000;
/// Sessions, also ended ones, that are looked at to tell who serves a lane: the newest.
pub const SERVING_ROWS: u32 = 50_000;
/// Characters of the note with which a queue is paused.
pub const NOTE_CHARS: usize = 500;
/// Queues that may be paused although no task was ever submitted to them.
pub const PAUSED_QUEUES: u32 = 10_000;
/// The longest a caller may wait for an outcome in one request.
pub const WAIT: Duration = Duration::from_secs(60);
/// Handlers that run at once in one worker, at the most.
pub const CONCURRENCY: usize = 10_000;
/// Leases a worker holds beyond those it runs, at the most: one full batch at work and one on its way.
pub const PREFETCH: usize = 2_000;
/// How long tasks that succeeded or were cancelled are kept, unless the settings say otherwise.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The longest time for which ended tasks may be kept, if not for ever.
pub const RETENTION: Duration = Duration::from_secs(3_650 * 24 * 60 * 60);
/// Versions of the settings that are kept; older ones are forgotten.
pub const SETTINGS_VERSIONS: u32 = 100;
/// Characters of the comment on a change.
pub const COMMENT_CHARS: usize = 500;
/// Tasks of one workflow at its submit.
pub const WORKFLOW_TASKS: usize = 10_000;
/// Edges of one workflow at its submit.
pub const WORKFLOW_EDGES: usize = 100_000;
/// Tasks that may depend on one task.
pub const CHILDREN: usize = 10_000;
/// Tasks that one task may depend on.
pub const DEPENDENCIES: usize = 10_000;
/// Tasks that one outcome may add.
pub const THEN_TASKS: usize = 1_000;
/// Characters of a task's name in a workflow.
pub const KEY_CHARS: usize = 200;
/// Characters of a workflow's name.
pub const WORKFLOW_NAME_CHARS: usize = 200;
/// Bytes of results and errors of parents that a lease carries; beyond that it has ids and states only.
pub const PARENT_BYTES: usize = 256 * 1024;
/// Tasks that one step of the cascade cancels.
pub const CASCADE_STEP: u32 = 500;
/// Characters of one expression in a payload.
pub const EXPRESSION_CHARS: usize = 2_000;
/// Steps that the evaluation of one expression may take.
pub const TEMPLATE_FUEL: u64 = 1_000;
/// Bytes of one `POST /workflows`.
pub const WORKFLOW_BYTES: usize = 32 * 1024 * 1024;
/// Characters of a cron expression: a list of every minute and every second fits.
pub const CRON_CHARS: usize = 1_000;
/// Characters of the name of a time zone; the longest of the database has half as many.
pub const TIME_ZONE_CHARS: usize = 64;
/// The shortest time between two slots of a schedule.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// How late a slot may be decided before it counts as missed.
pub const MISFIRE: Duration = Duration::from_secs(60);
/// How late a missed slot may still run when its schedule does not say.
pub const DEFAULT_CATCH_UP: Duration = Duration::from_secs(60 * 60);
/// How late a missed slot may run at the most.
pub const CATCH_UP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Slots that run at once after an outage, at the most: the last ones.
pub const ALL_MISSED: usize = 1_000;
/// Slots kept in the log of one schedule; older ones are forgotten.
pub const SLOT_LOG: usize = 100;
/// The longest time over which the starts of a schedule may be spread.
pub const SCHEDULE_JITTER: Duration = Duration::from_secs(60 * 60);
/// How long before a slot its task is stored.
pub const LOOK_AHEAD: Duration = Duration::from_secs(60);
/// How far ahead the next slot of a cron expression may lie: eight leap-length years, since between
/// 2096 and 2104 there is no 29 February.
pub const NEXT_SLOT: Duration = Duration::from_secs(8 * 366 * 24 * 60 * 60);
/// Schedules of an installation: its leader keeps them all in memory.
pub const SCHEDULES: u32 = 100_000;
/// How far back slots may be run afterwards.
pub const BACKFILL: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Slots of one backfill.
pub const BACKFILL_SLOTS: usize = 100_000;
/// Slots of one step of a backfill; a step is one commit.
pub const BACKFILL_STEP: usize = 100;
/// Slots that the preview of a backfill names.
pub const BACKFILL_PREVIEW: usize = 1_000;
/// API keys of one tenant, or of the installation, also those that were revoked.
pub const API_KEYS: u32 = 10_000;
/// Characters of the name of an API key.
pub const KEY_NAME_CHARS: usize = 200;
/// Queues that one API key may name, and types.
pub const KEY_NAMES: usize = 100;
/// How long an API key may live, if not for ever.
pub const KEY_LIFETIME: Duration = Duration::from_secs(3_650 * 24 * 60 * 60);
/// Tenants with a record: every node keeps them all in memory.
pub const TENANTS: u32 = 10_000;
/// Paths in payloads that are masked, at the most.
pub const REDACT_PATHS: usize = 100;
/// Characters of one such path.
pub const REDACT_CHARS: usize = 200;
/// Characters of the name of a sink of events.
pub const SINK_NAME_CHARS: usize = 120;
/// Sinks: each writer of events reads what all of them want.
pub const SINKS: u32 = 1_000;
/// What one sink may subscribe to.
pub const SUBSCRIPTIONS: usize = 20;
/// Stored rows of events that one read looks at.
pub const EVENT_ROWS: u32 = 200;
/// Events of one stored row: a larger change is stored as several rows.
pub const EVENTS_PER_ROW: usize = 1_000;
/// How long the events of a stream are kept for those who come back.
pub const STREAM_WINDOW: Duration = Duration::from_secs(5 * 60);
/// Rows that a sink may be behind before it is suspended.
pub const SINK_ROWS: u64 = 1_000_000;
/// How far a sink may be behind before it is suspended.
pub const SINK_AGE: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// Recipients of one mail.
pub const MAIL_RECIPIENTS: usize = 50;
/// Characters of a mail address.
pub const MAIL_ADDRESS_CHARS: usize = 254;
/// Characters of the name beside a mail address.
pub const MAIL_NAME_CHARS: usize = 200;
/// Characters of the subject of a mail.
pub const MAIL_SUBJECT_CHARS: usize = 500;
/// Bytes of the text of a mail that a template writes, and of its HTML.
pub const MAIL_BODY_BYTES: usize = 1024 * 1024;
/// Steps that one template of a mail may take.
pub const MAIL_TEMPLATE_FUEL: u64 = 100_000;
/// Mails that `duly dev` keeps in its outbox.
pub const OUTBOX_MAILS: usize = 1000;
/// Rows of the result of a statement, if its task does not say.
pub const SQL_DEFAULT_ROWS: usize = 1000;
/// The most rows of such a result.
pub const SQL_ROWS: usize = 10_000;
/// Bytes of these rows as JSON text.
pub const SQL_ROWS_BYTES: usize = 512 * 1024;
/// Parameters of a statement.
pub const SQL_PARAMETERS: usize = 1000;
/// Databases that a node may name for tasks.
pub const SQL_SOURCES: usize = 100;
