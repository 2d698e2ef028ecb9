//! The answers to an exchange.

use duly_core::lease::{Finish, Finished, Outcome};
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use super::{ExchangeResult, PreparedExchange};
use crate::postgres::PostgresStore;
use crate::postgres::error::Result;
use crate::postgres::heads;
use crate::postgres::range::Range;
use crate::postgres::row;
use crate::postgres::task_state::state::each;
use crate::postgres::verb::finish;

impl PostgresStore {
    /// One answer per finish: some were given, plain successes are done or have to be looked up.
    pub(super) async fn answers(
        &self,
        prepared: &PreparedExchange<'_>,
        result: &mut ExchangeResult,
    ) -> Result<Vec<Finished>> {
        let done: HashSet<Uuid> = result.done.drain(..).collect();
        let missing: Vec<_> =
            prepared.items.ids.iter().filter(|id| !done.contains(*id)).copied().collect();
        let refused = self.refusals(prepared, result.is_open, missing).await?;
        let mut slow = result.slow.drain(..);
        let answer = |item: &Finish| {
            if prepared.items.is_slow(item) {
                return slow.next().expect("one answer per item");
            }
            refused.get(&row::uuid(item.task)).copied().unwrap_or(Finished::Done)
        };
        Ok(prepared.exchange.finishes.iter().map(answer).collect())
    }

    /// Why plain successes were not committed: they were before, or the lease is gone.
    async fn refusals(
        &self,
        prepared: &PreparedExchange<'_>,
        is_open: bool,
        missing: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Finished>> {
        if missing.is_empty() {
            return Ok(HashMap::default());
        }
        let select = "/* finish.refusal */ SELECT task.id, epoch, session, status, lane.tenant
            FROM duly.task JOIN duly.lane ON lane.id = task.lane WHERE task.id = ANY($1)";
        let rows = self.pool.query(select, &[&missing]).await?;
        let mut refused: HashMap<_, _> =
            missing.into_iter().map(|id| (id, Finished::Unknown)).collect();
        let tenant = prepared.session.as_ref().and_then(|session| session.opened.tenant.as_ref());
        let tenant = tenant.filter(|_| is_open);
        let holder = row::session_uuid(prepared.exchange.session);
        for found in rows {
            let id: Uuid = found.try_get(0)?;
            let owner: &str = found.try_get(4)?;
            if tenant.is_some_and(|it| it.as_str() != owner) {
                continue;
            }
            let (epoch, session): (i32, Option<Uuid>) = (found.try_get(1)?, found.try_get(2)?);
            let item = prepared.items.epochs.get(&id);
            let same_lease = item == Some(&epoch) && session == Some(holder);
            let status = row::decode_status(found.try_get(3)?, id)?;
            let success = Outcome::Success { result: None };
            let known = same_lease && finish::is_same(status, &success);
            refused.insert(id, if known { Finished::Done } else { Finished::LeaseLost });
        }
        Ok(refused)
    }

    /// When this claim, or one for all lanes of the session, could be granted something. What it may
    /// not have now does not count, or it would ask for it again and again.
    pub(super) async fn next_due(
        &self,
        prepared: &PreparedExchange<'_>,
        result: &ExchangeResult,
    ) -> Result<Option<i64>> {
        let Some(session) = prepared.session.as_ref().filter(|_| result.is_open) else {
            return Ok(None);
        };
        let is_held_back = result.picky && result.held == Some(true);
        if (result.echo && result.leases.is_empty()) || is_held_back {
            return Ok(None);
        }
        let serves = prepared.claimable(self, session);
        let quarantined = self.heads.quarantined(result.now, &serves);
        if quarantined.is_empty() || !self.is_busy(prepared, result).await? {
            return Ok(self.heads.next(|_, range| serves(range.lane)));
        }
        // Quarantined tasks are skipped until the session holds nothing.
        let passed_by = |at: i64, range: Range| range.is_quarantined() && at <= result.now;
        let next = self.heads.next(|at, range| serves(range.lane) && !passed_by(at, range));
        let after = vec![result.now; quarantined.len()];
        let (lanes, ranks) = (each(&quarantined, |it| it.lane), each(&quarantined, |it| it.rank));
        let rows = self.pool.query(heads::SOME, &[&lanes, &ranks, &after]).await?;
        let mut nexts = vec![next];
        for found in rows {
            nexts.push(found.try_get(2)?);
        }
        Ok(nexts.into_iter().flatten().min())
    }

    /// Whether the session holds leases, which an exchange only knows where it saw quarantined tasks.
    async fn is_busy(
        &self,
        prepared: &PreparedExchange<'_>,
        result: &ExchangeResult,
    ) -> Result<bool> {
        if let Some(held) = result.held {
            return Ok(held);
        }
        let session = row::session_uuid(prepared.exchange.session);
        let holds = "/* session.holds */ SELECT duly.holds($1)";
        let rows = self.pool.query(holds, &[&session]).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
    }
}
