//! Where this node believes that each range of the due table starts. This shows without a query which
//! ranges are due, which lanes are drained, and when to wake up next.
//!
//! A belief is never later than what this node could know: a task that is added lowers it, and only a
//! read of the table raises it, unless it was lowered since. Tasks of another node whose notification
//! was lost are found when all ranges are listed again. A wrong belief costs a read or some time, and
//! nothing else.

use std::collections::BTreeSet;

use deadpool_postgres::GenericClient;
use duly_core::limits::AGEING_PER_LEVEL;
use foldhash::HashMap;
use parking_lot::Mutex;

use super::error::Result;
use super::range::{LaneId, RANKS, Range};

#[derive(Debug, Default)]
pub(super) struct Heads {
    beliefs: Mutex<Beliefs>,
}

#[derive(Debug, Default)]
struct Beliefs {
    by_range: HashMap<Range, Belief>,
    by_time: BTreeSet<(i64, Range)>,
    /// Those of quarantined tasks once more: they are few, and every exchange asks for them.
    quarantined: BTreeSet<(i64, Range)>,
    /// Counts what this node has learned.
    version: u64,
    /// When the last look at all ranges began.
    listed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Belief {
    /// `None` if the range is believed to be empty.
    at: Option<i64>,
    /// When a task was last added, in `version`.
    added: u64,
    /// When a transaction of this node last said so, which had changed the range itself.
    settled: u64,
    /// Where those had begun to look that said so since the last look at all ranges began: the
    /// earliest.
    since: i64,
}

/// A moment in what this node has learned: a later read of the table sees all of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(u64);

/// What a look at a range has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) range: Range,
    /// Where it began; what lies before is not known from it.
    pub(super) since: i64,
    /// What comes first from there on, if anything does.
    pub(super) head: Option<i64>,
}

impl Heads {
    /// To be taken before looking into the table.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.beliefs.lock().version)
    }

    /// To be taken before looking at all ranges.
    pub(super) fn moment_of_list(&self) -> Moment {
        let mut beliefs = self.beliefs.lock();
        beliefs.listed = beliefs.version;
        Moment(beliefs.version)
    }

    /// A task waits here, since a commit.
    pub(super) fn add(&self, range: Range, run_at: i64) {
        let mut beliefs = self.beliefs.lock();
        let version = beliefs.next_version();
        let known = beliefs.get(range);
        let at = known.at.map_or(run_at, |known| known.min(run_at));
        beliefs.set(range, Belief { at: Some(at), added: version, ..known });
    }

    /// What a committed transaction of this node has left of ranges. It looked after this moment.
    pub(super) fn settle(&self, moment: Moment, looks: impl IntoIterator<Item = Look>) {
        let mut beliefs = self.beliefs.lock();
        let settled = beliefs.next_version();
        for Look { range, since, head } in looks {
            let known = beliefs.get(range);
            let unseen = known.added > moment.0 || known.at.is_some_and(|at| at < since);
            let at = if unseen { earlier(known.at, head) } else { head };
            let is_next = known.settled > beliefs.listed;
            let since = if is_next { since.min(known.since) } else { since };
            beliefs.set(range, Belief { at, settled, since, ..known });
        }
    }

    /// What a look at all ranges has shown that began after this moment; those that it did not show
    /// are empty. What was added or settled meanwhile is known better, except for what lies before
    /// where it was settled: a transaction that was open for long may have added it. Answers with the
    /// earliest start that was new to this node.
    pub(super) fn learn(&self, moment: Moment, heads: &HashMap<Range, i64>) -> Option<i64> {
        let mut beliefs = self.beliefs.lock();
        let is_old = |belief: &Belief| belief.added <= moment.0 && belief.settled <= moment.0;
        let gone: Vec<_> = beliefs
            .by_range
            .iter()
            .filter(|(range, belief)| is_old(belief) && !heads.contains_key(range))
            .map(|(range, _)| *range)
            .collect();
        for range in gone {
            beliefs.forget(range);
        }
        let mut newest = None;
        for (range, at) in heads {
            let known = beliefs.get(*range);
            if known.settled > moment.0 && *at >= known.since {
                continue;
            }
            if known.at.is_none_or(|known| *at < known) {
                newest = earlier(newest, Some(*at));
            }
            let at = if is_old(&known) { Some(*at) } else { earlier(known.at, Some(*at)) };
            beliefs.set(*range, Belief { at, ..known });
        }
        newest
    }

    /// The ranges that start by this time and come first in the order of claims, and their starts.
    pub(super) fn due(
        &self,
        by: i64,
        limit: usize,
        counts: impl Fn(LaneId) -> bool,
    ) -> Vec<(Range, i64)> {
        let beliefs = self.beliefs.lock();
        let due = beliefs.by_time.iter().take_while(|(at, _)| *at <= by);
        let mut due: Vec<_> = due
            .filter(|(_, range)| counts(range.lane))
            .map(|(at, range)| (claim_order(*at, range.rank), *range, *at))
            .collect();
        drop(beliefs);
        if due.len() > limit {
            due.select_nth_unstable(limit);
            due.truncate(limit);
        }
        due.into_iter().map(|(_, range, at)| (range, at)).collect()
    }

    /// The first start of one of these ranges.
    pub(super) fn next(&self, counts: impl Fn(i64, Range) -> bool) -> Option<i64> {
        let beliefs = self.beliefs.lock();
        beliefs.by_time.iter().find(|(at, range)| counts(*at, *range)).map(|(at, _)| *at)
    }

    /// The ranges of quarantined tasks that start by this time.
    pub(super) fn quarantined(&self, by: i64, counts: impl Fn(LaneId) -> bool) -> Vec<Range> {
        let beliefs = self.beliefs.lock();
        let due = beliefs.quarantined.iter().take_while(|(at, _)| *at <= by);
        due.map(|(_, range)| *range).filter(|range| counts(range.lane)).collect()
    }

    /// Whether nothing in the lane is due, apart from quarantined tasks.
    pub(super) fn is_drained(&self, lane: LaneId, now: i64) -> bool {
        let beliefs = self.beliefs.lock();
        let due = |rank| beliefs.get(Range { lane, rank }).at.is_some_and(|at| at <= now);
        !(0..RANKS).any(due)
    }
}

impl Beliefs {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn get(&self, range: Range) -> Belief {
        self.by_range.get(&range).copied().unwrap_or_default()
    }

    fn set(&mut self, range: Range, belief: Belief) {
        self.forget(range);
        self.by_range.insert(range, belief);
        if let Some(at) = belief.at {
            self.by_time.insert((at, range));
            if range.is_quarantined() {
                self.quarantined.insert((at, range));
            }
        }
    }

    fn forget(&mut self, range: Range) {
        if let Some(Belief { at: Some(at), .. }) = self.by_range.remove(&range) {
            self.by_time.remove(&(at, range));
            self.quarantined.remove(&(at, range));
        }
    }
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// How much later each rank comes in the order of claims.
pub(super) fn ageing() -> i64 {
    i64::try_from(AGEING_PER_LEVEL.as_millis()).expect("a minute fits")
}

fn claim_order(at: i64, rank: i16) -> i64 {
    at.saturating_add(i64::from(rank % RANKS) * ageing())
}

/// Lists where all ranges start, one probe each, however many rows lie between.
pub(super) async fn list(client: &impl GenericClient) -> Result<HashMap<Range, i64>> {
    let select = "/* due.heads */ WITH RECURSIVE head AS (
             (SELECT lane, rank, run_at FROM duly.due ORDER BY lane, rank, run_at LIMIT 1)
             UNION ALL
             SELECT next.* FROM head, LATERAL (
                 SELECT due.lane, due.rank, due.run_at FROM duly.due
                 WHERE (due.lane, due.rank) > (head.lane, head.rank)
                 ORDER BY due.lane, due.rank, due.run_at LIMIT 1) next)
         SELECT lane, rank, run_at FROM head";
    let mut heads = HashMap::default();
    for row in client.query(select, &[]).await? {
        heads.insert(Range { lane: row.try_get(0)?, rank: row.try_get(1)? }, row.try_get(2)?);
    }
    Ok(heads)
}

/// Where some ranges start.
pub(super) const SOME: &str = "/* due.some_heads */ SELECT r.lane, r.rank,
        (SELECT d.run_at FROM duly.due d WHERE d.lane = r.lane AND d.rank = r.rank
           AND d.run_at > r.after ORDER BY d.run_at LIMIT 1)
    FROM unnest($1::integer[], $2::smallint[], $3::bigint[]) r(lane, rank, after)";

#[cfg(test)]
mod tests;
