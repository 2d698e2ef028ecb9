//! Filters in SQL: fixed text whose parameters are the terms, so that nothing that a caller wrote is
//! ever part of it. What is asked of an error's text is looked at here, since the server knows no
//! error groups and not every upper and lower case; it only sends what all other terms leave.

use duly_core::error_group::ErrorGroup;
use duly_core::filter::{Filter, says};
use duly_core::name::TenantName;
use duly_core::state::Status;
use duly_core::task::Failure;
use foldhash::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::days;
use super::error::Result;
use super::page::Looked;
use super::range::LaneId;
use super::row::encode_status;
use super::snapshot::Snapshot;

/// The verdict on rows of tasks that stand beside their `lane`, and what else is to be known of
/// those that fit. 0 says that a row is another tenant's, 1 that a term does not hold, 2 that all do
/// but for those on the error. A `CASE` stops at the first that does not, so what is dear to look at
/// comes last. Takes where the rows come from.
pub(super) fn judging(name: &str, rows: &str) -> String {
    format!(
        "/* {name} */ SELECT looked.id, looked.verdict,
            CASE WHEN looked.verdict = 2 THEN octet_length(looked.payload)
                + coalesce(octet_length(looked.result), 0)
                + coalesce((SELECT octet_length(checkpoint) FROM duly.progress
                            WHERE progress.task = looked.id), 0) END,
            CASE WHEN looked.verdict = 2 AND $8 THEN looked.error END,
            looked.charged > 0, coalesce(starts_with(looked.queue, 'duly.'), false)
         FROM (SELECT task.id, task.payload, task.result, task.error, task.charged, lane.queue,
            CASE WHEN lane.tenant IS DISTINCT FROM $1 THEN 0
                WHEN $2::text IS NOT NULL AND lane.queue <> $2 THEN 1
                WHEN $3::text IS NOT NULL AND lane.type <> $3 THEN 1
                WHEN NOT task.status = ANY($4::smallint[]) THEN 1
                WHEN $9::uuid IS NOT NULL AND task.workflow IS DISTINCT FROM $9 THEN 1
                WHEN ($7::bigint IS NOT NULL OR $8) AND task.error IS NULL THEN 1
                WHEN $5::text IS NOT NULL AND (SELECT session.name FROM duly.session
                    WHERE session.id = task.session) IS DISTINCT FROM $5 THEN 1
                WHEN $6::text[] IS NOT NULL AND (task.labels IS NULL OR EXISTS (
                    SELECT FROM unnest($6) mark WHERE strpos(task.labels, '{{' || mark) = 0
                        AND strpos(task.labels, ',' || mark) = 0)) THEN 1
                ELSE 2 END AS verdict
            {rows}) looked"
    )
}

/// The verdict on dead letters joined with their `lane`, as far as it is known without their tasks,
/// which are in other tables: 2 means that nothing speaks against it. Takes [`Terms::of_place`].
pub(super) const DEAD_VERDICT: &str = "CASE WHEN lane.tenant IS DISTINCT FROM $1 THEN 0
        WHEN $2::text IS NOT NULL AND lane.queue <> $2 THEN 1
        WHEN $3::text IS NOT NULL AND lane.type <> $3 THEN 1
        WHEN $4::bigint IS NOT NULL AND dlq.error_group <> $4 THEN 1
        ELSE 2 END";

/// A filter as statements take it.
pub(super) struct Terms<'a> {
    tenant: &'a str,
    queue: Option<&'a str>,
    task_type: Option<&'a str>,
    statuses: Vec<i16>,
    worker: Option<&'a str>,
    /// Each label as it stands in a row, between others.
    labels: Option<Vec<String>>,
    group: Option<i64>,
    /// Whether a term is about what the error says.
    of_error: bool,
    error: Option<&'a str>,
    workflow: Option<Uuid>,
}

/// A parameter of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

impl<'a> Terms<'a> {
    pub(super) fn new(tenant: &'a TenantName, filter: &'a Filter) -> Self {
        let Filter { queue, task_type, labels, error, group, worker, workflow, .. } = filter;
        let statuses = Status::ALL.into_iter().filter(|status| filter.allows(*status));
        let text = |text: &str| serde_json::to_string(text).expect("a string is JSON");
        let mark = |(key, value): (&String, &String)| format!("{}:{}", text(key), text(value));
        Self {
            tenant: tenant.as_str(),
            queue: queue.as_ref().map(|queue| queue.as_str()),
            task_type: task_type.as_ref().map(|name| name.as_str()),
            statuses: statuses.map(encode_status).collect(),
            worker: worker.as_deref(),
            labels: (!labels.is_empty()).then(|| labels.iter().map(mark).collect()),
            group: group.map(ErrorGroup::to_bits),
            of_error: error.is_some() || group.is_some(),
            error: error.as_deref(),
            workflow: workflow.map(|id| Uuid::from_bytes(*id.as_bytes())),
        }
    }

    /// What a statement made by [`judging`] takes first.
    pub(super) fn parameters(&self) -> [Parameter<'_>; 9] {
        let Self { tenant, queue, task_type, statuses, worker, labels, group, of_error, .. } = self;
        [tenant, queue, task_type, statuses, worker, labels, group, of_error, &self.workflow]
    }

    /// What only the place of a task asks for: tenant, queue, type and error group.
    pub(super) fn of_place(&self) -> [Parameter<'_>; 4] {
        [&self.tenant, &self.queue, &self.task_type, &self.group]
    }

    /// Reads a row of such a statement.
    pub(super) fn judge(&self, row: &Row) -> Result<(Uuid, Verdict)> {
        let id = row.try_get(0)?;
        let verdict = match row.try_get::<_, i32>(1)? {
            0 => Verdict::Foreign,
            2 if !self.of_error || self.holds_for(row.try_get(3)?) => {
                let bytes: Option<i32> = row.try_get(2)?;
                Verdict::Fits {
                    bytes: bytes.unwrap_or_default().unsigned_abs() as usize,
                    tried: row.try_get(4)?,
                    system: row.try_get(5)?,
                }
            }
            _ => Verdict::Other,
        };
        Ok((id, verdict))
    }

    /// Whether the terms on the error hold. A text that cannot be read does not match: one damaged
    /// row must not hide the others.
    fn holds_for(&self, error: Option<&str>) -> bool {
        let failure: Option<Failure> = error.and_then(|text| serde_json::from_str(text).ok());
        failure.is_some_and(|failure| {
            self.error.is_none_or(|text| says(&failure, text))
                && self.group.is_none_or(|group| ErrorGroup::of(&failure).to_bits() == group)
        })
    }

    /// The verdicts on tasks that were found in other tables. A task that is gone has none.
    pub(super) async fn on(
        &self,
        snapshot: &Snapshot<'_>,
        tasks: impl Iterator<Item = Uuid>,
    ) -> Result<HashMap<Uuid, Verdict>> {
        let rows = "FROM duly.task LEFT JOIN duly.lane ON lane.id = task.lane
            WHERE task.id = ANY($10)";
        let select = judging("task.verdicts", rows);
        let mut verdicts = HashMap::default();
        for ids in days::apart(tasks) {
            let mut parameters = self.parameters().to_vec();
            parameters.push(&ids);
            for row in snapshot.query(&select, &parameters).await? {
                let (id, verdict) = self.judge(&row)?;
                verdicts.insert(id, verdict);
            }
        }
        Ok(verdicts)
    }

    /// Tasks that were found in other tables, each with what speaks against it and its place.
    pub(super) async fn looked_at<P: Copy>(
        &self,
        snapshot: &Snapshot<'_>,
        found: &[(Uuid, i32, P)],
    ) -> Result<Vec<Looked<P>>> {
        let open = found.iter().filter(|(_, verdict, _)| *verdict == 2);
        let verdicts = self.on(snapshot, open.map(|(task, ..)| *task)).await?;
        let looked = |(task, verdict, place): &(Uuid, i32, P)| {
            let verdict = match verdict {
                0 => Verdict::Foreign,
                2 => verdicts.get(task).copied().unwrap_or(Verdict::Foreign),
                _ => Verdict::Other,
            };
            Looked { task: *task, verdict, place: *place }
        };
        Ok(found.iter().map(looked).collect())
    }

    /// The lanes in which there may be something that fits.
    pub(super) async fn lanes(&self, snapshot: &Snapshot<'_>) -> Result<Lanes> {
        let select = "/* lane.few */ SELECT id FROM duly.lane WHERE tenant = $1
            AND ($2::text IS NULL OR queue = $2) AND ($3::text IS NULL OR type = $3) LIMIT $4";
        let most = i64::try_from(FEW_LANES).expect("a small number") + 1;
        let asked: [Parameter<'_>; 4] = [&self.tenant, &self.queue, &self.task_type, &most];
        let rows = snapshot.query(select, &asked).await?;
        let lanes = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<_>>>()?;
        Ok(match lanes.len() {
            0 => Lanes::None,
            count if count > FEW_LANES => Lanes::Many,
            _ => Lanes::Few(lanes),
        })
    }
}

/// What a filter says of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is another tenant's.
    Foreign,
    /// A term does not hold.
    Other,
    /// All of them do.
    Fits {
        /// How much of a page it takes.
        bytes: usize,
        /// Whether an attempt was charged.
        tried: bool,
        /// Whether it is the system's own.
        system: bool,
    },
}

/// Lanes that are read one by one; from more than these, whatever lies in the order asked for.
const FEW_LANES: usize = 16;

/// The lanes that a filter is about.
#[derive(Debug)]
pub(super) enum Lanes {
    /// None: there is nothing to look for, however many tasks others have.
    None,
    /// These.
    Few(Vec<LaneId>),
    /// More than can be read one by one.
    Many,
}

/// Whether a term is about what only the task's own row says, beside its place.
pub(super) fn needs_task(filter: &Filter) -> bool {
    let Filter { labels, error, worker, workflow, .. } = filter;
    !labels.is_empty() || error.is_some() || worker.is_some() || workflow.is_some()
}
