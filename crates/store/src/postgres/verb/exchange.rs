//! Finish a batch and claim the next, in one commit and mostly in one round trip.

mod answers;

use std::sync::Arc;
use std::time::Instant;

use deadpool_postgres::GenericClient;
use duly_core::lease::{Finished, Lease};
use duly_core::limits::STORE_BATCH_BYTES;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{Claim, Exchange, Exchanged, Parent};
use foldhash::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

use super::items::Items;
use super::{Scope, Verb, finish};
use crate::postgres::PostgresStore;
use crate::postgres::error::Result;
use crate::postgres::heads::{self, Look, Moment};
use crate::postgres::range::{LaneId, Range};
use crate::postgres::sessions::Session;
use crate::postgres::task_state::state::each;
use crate::postgres::wakes::Wakes;
use crate::postgres::workflows::parents;
use crate::postgres::{lease, partitions, row};

/// From this many outcomes on, they are committed in parallel with the claim that came with them, on
/// another core of the server. A repeated call is safe: each of the two is idempotent.
const LARGE: usize = 16;
/// At least this many ranges are read, since some may turn out to be empty.
const RANGES: usize = 16;
/// Up to so many edges to granted tasks are read along with them.
const FEW_EDGES: i32 = 64;

const EXCHANGE: &str = "/* exchange */ SELECT * FROM duly.exchange(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";

impl PostgresStore {
    pub(in crate::postgres) async fn finish_and_claim(
        &self,
        exchange: &Exchange,
    ) -> Result<Exchanged> {
        let session = self.session(exchange.session).await?;
        let prepared =
            PreparedExchange { exchange, session, items: Items::sort(&exchange.finishes) };
        let mut result = if !prepared.items.slow.is_empty() {
            self.run_with_days(&prepared).await?
        } else if prepared.is_large() && !prepared.sees_quarantined(self) {
            self.exchange_in_two(&prepared).await?
        } else {
            self.retry_on_collision(|| self.exchange_part(&prepared, Part::Whole)).await?
        };
        self.note(&result);
        if !result.is_open {
            self.sessions.forget(exchange.session);
        }
        let finished = self.answers(&prepared, &mut result).await?;
        let next_due = self.next_due(&prepared, &result).await?;
        Ok(Exchanged {
            finished,
            leases: result.leases,
            parents: result.parents,
            next_due: next_due.map(row::instant),
        })
    }

    /// Tasks that come with outcomes may be of days that are not there yet.
    async fn run_with_days(&self, prepared: &PreparedExchange<'_>) -> Result<ExchangeResult> {
        match self.run(prepared).await {
            Err(fault) if fault.is_missing_day() => {
                let then = prepared.items.slow.iter().filter_map(|item| item.then.as_ref());
                let days = partitions::of(then.flat_map(|tasks| tasks.iter()).map(|task| task.id));
                self.server_errors.note(self.make_days(days).await)?;
                self.run(prepared).await
            }
            answer => answer,
        }
    }

    async fn exchange_part(
        &self,
        prepared: &PreparedExchange<'_>,
        part: Part,
    ) -> Result<ExchangeResult> {
        let client = self.pool.get().await?;
        let look = || match part {
            Part::Outcomes => LookedAt::nowhere(self.heads.moment()),
            Part::Whole | Part::Claim => prepared.look(self, &Wakes::default()),
        };
        let careful = self.weights.are_mixed();
        match prepared.call(self, &client, look(), part, careful).await {
            Err(fault) if fault.is_heavy() => {
                self.weights.note(true);
                prepared.call(self, &client, look(), part, true).await
            }
            answer => answer,
        }
    }

    async fn exchange_in_two(&self, prepared: &PreparedExchange<'_>) -> Result<ExchangeResult> {
        let (outcomes, claim) = tokio::join!(
            self.retry_on_collision(|| self.exchange_part(prepared, Part::Outcomes)),
            self.retry_on_collision(|| self.exchange_part(prepared, Part::Claim)),
        );
        let (outcomes, claim) = (outcomes?, claim?);
        let is_open = outcomes.is_open && claim.is_open;
        let freed = outcomes.freed;
        let told = outcomes.told || claim.told;
        Ok(ExchangeResult { done: outcomes.done, is_open, freed, told, ..claim })
    }

    /// What this node learns from an exchange.
    fn note(&self, result: &ExchangeResult) {
        let mut wakes = Wakes::default();
        result.freed.iter().for_each(|(range, run_at)| wakes.add(*range, *run_at));
        if result.told {
            wakes.tell();
        }
        self.wake(wakes);
        self.clock.learn(result.now, result.sent);
        self.pauses.replace(result.paused.iter().cloned());
        self.heads.settle(result.looked_at, result.looks.iter().copied());
    }
}

/// An exchange that is ready to be sent.
struct PreparedExchange<'a> {
    exchange: &'a Exchange,
    /// `None` if it is not open.
    session: Option<Arc<Session>>,
    items: Items<'a>,
}

/// What part of an exchange is done in one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Outcomes,
    Claim,
}

/// The ranges that a claim reads, and the moment before which they were chosen.
struct LookedAt {
    ranges: Vec<Range>,
    since: Vec<i64>,
    moment: Moment,
}

impl LookedAt {
    fn nowhere(moment: Moment) -> Self {
        Self { ranges: Vec::new(), since: Vec::new(), moment }
    }
}

/// The result of an exchange.
struct ExchangeResult {
    now: i64,
    /// When it was sent to the server.
    sent: Instant,
    slow: Vec<Finished>,
    done: Vec<Uuid>,
    leases: Vec<Lease>,
    /// Their parents, if they were read along.
    parents: Option<Vec<Vec<Parent>>>,
    /// Where tasks wait that the outcomes have released.
    freed: Vec<(Range, i64)>,
    is_open: bool,
    /// Whether the session holds leases; only known where quarantined tasks matter.
    held: Option<bool>,
    picky: bool,
    echo: bool,
    paused: Vec<(TenantName, Option<QueueName>)>,
    looks: Vec<Look>,
    looked_at: Moment,
    /// Whether events were written.
    told: bool,
}

impl Verb for PreparedExchange<'_> {
    type Answer = ExchangeResult;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<ExchangeResult> {
        if self.exchange.claim.is_some() {
            let lock = "/* exchange.hold */ SELECT FROM duly.session WHERE id = $1
                FOR NO KEY UPDATE";
            scope.query(lock, &[&row::session_uuid(self.exchange.session)]).await?;
        }
        let slow = finish::finish(scope, self.exchange, &self.items.slow).await?;
        // Before those of the claim, which may grant what has just ended.
        scope.write_events().await?;
        let looked_at = self.look(scope.store, &scope.wakes);
        let client = scope.transaction();
        let result = self.call(scope.store, client, looked_at, Part::Whole, true).await?;
        // These reads came after what this transaction has added.
        for look in &result.looks {
            scope.wakes.seen(look.range);
        }
        let ExchangeResult { freed, .. } = &result;
        freed.iter().for_each(|(range, run_at)| scope.wakes.add(*range, *run_at));
        Ok(ExchangeResult { slow, freed: Vec::new(), ..result })
    }
}

impl PreparedExchange<'_> {
    /// Whether outcomes and claim are better done apart.
    fn is_large(&self) -> bool {
        let claim = self.exchange.claim.as_ref();
        self.items.ids.len() >= LARGE && claim.is_some_and(|claim| claim.max >= LARGE)
    }

    /// Whether quarantined tasks are among what it may claim. One is granted to a session that is
    /// idle, which takes the outcomes of this exchange into account.
    fn sees_quarantined(&self, store: &PostgresStore) -> bool {
        let Some(session) = &self.session else { return false };
        !store.heads.quarantined(store.estimate(), self.claimable(store, session)).is_empty()
    }

    /// Whether tasks of a lane may be granted.
    fn claimable(&self, store: &PostgresStore, session: &Session) -> impl Fn(LaneId) -> bool {
        store.claimable(session, self.exchange.claim.as_ref())
    }

    /// The ranges that the claim reads: those that are due, as far as this node knows.
    fn look(&self, store: &PostgresStore, own: &Wakes) -> LookedAt {
        let moment = store.heads.moment();
        let claim = self.exchange.claim.as_ref();
        let (Some(session), Some(claim)) = (&self.session, claim) else {
            return LookedAt::nowhere(moment);
        };
        let now = store.estimate();
        let serves = self.claimable(store, session);
        let mut due: HashMap<Range, i64> =
            store.heads.due(now, claim.max.max(RANGES), &serves).into_iter().collect();
        for (range, at) in own.ranges().filter(|(range, at)| *at <= now && serves(range.lane)) {
            let known = due.entry(range).or_insert(at);
            *known = at.min(*known);
        }
        let since = due.values().map(|at| (*at).min(store.probed_since(now))).collect();
        LookedAt { ranges: due.into_keys().collect(), since, moment }
    }

    async fn call(
        &self,
        store: &PostgresStore,
        client: &impl GenericClient,
        looked_at: LookedAt,
        part: Part,
        careful: bool,
    ) -> Result<ExchangeResult> {
        let claim: Option<&Claim> = self.exchange.claim.as_ref().filter(|_| part != Part::Outcomes);
        let items = &self.items;
        let (ended, results, ran) = match part {
            Part::Claim => (&[][..], &[][..], &[][..]),
            Part::Whole | Part::Outcomes => (&*items.ids, &*items.results, &*items.ran),
        };
        let epochs: Vec<_> = ended.iter().map(|id| self.items.epochs[id]).collect();
        let max = claim.map_or(0, |claim| i32::try_from(claim.max).unwrap_or(i32::MAX));
        let statement = client.prepare_cached(EXCHANGE).await?;
        let bytes = i64::try_from(STORE_BATCH_BYTES).expect("a few megabytes");
        let sent = Instant::now();
        let found = client
            .query_one(
                &statement,
                &[
                    &row::session_uuid(self.exchange.session),
                    &ended,
                    &epochs,
                    &results,
                    &ran,
                    &claim.map(|claim| row::encode_sequence(claim.sequence)),
                    &max,
                    &each(&looked_at.ranges, |it| it.lane),
                    &each(&looked_at.ranges, |it| it.rank),
                    &looked_at.since,
                    &bytes,
                    &heads::ageing(),
                    &lease::default_timeout(),
                    &lease::slack(),
                    &careful,
                    &claim.is_some_and(|claim| claim.only.is_none()),
                    &parents::byte_limit(),
                    &FEW_EDGES,
                ],
            )
            .await?;
        read(store, client, &found, sent, looked_at).await
    }
}

async fn read(
    store: &PostgresStore,
    client: &impl GenericClient,
    found: &Row,
    sent: Instant,
    looked_at: LookedAt,
) -> Result<ExchangeResult> {
    let heads: Option<Vec<Option<i64>>> = found.try_get("heads")?;
    if let Some(heavy) = found.try_get("heavy")? {
        store.weights.note(heavy);
    }
    let leases = lease::read(&store.lanes, client, found).await?;
    let children = leases.iter().filter(|lease| lease.has_parents).map(|lease| lease.task);
    let parents = parents::read_along(found, &children.collect::<Vec<_>>());
    let LookedAt { ranges, since, moment } = looked_at;
    let looks = ranges.into_iter().zip(since).zip(heads.unwrap_or_default());
    Ok(ExchangeResult {
        now: found.try_get("at")?,
        sent,
        slow: Vec::new(),
        done: found.try_get::<_, Option<Vec<Uuid>>>("done")?.unwrap_or_default(),
        leases,
        parents,
        freed: lease::freed(found)?,
        is_open: found.try_get("is_open")?,
        held: found.try_get("held")?,
        picky: found.try_get::<_, Option<bool>>("picky")?.unwrap_or(false),
        echo: found.try_get("echo")?,
        paused: lease::paused(found)?,
        looks: looks.map(|((range, since), head)| Look { range, since, head }).collect(),
        looked_at: moment,
        told: found.try_get("told")?,
    })
}
