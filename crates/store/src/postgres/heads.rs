//! Where this node believes that each range of the due table starts: tells without a query which
//! ranges are due, which lanes are drained, and when to wake up next.
//!
//! A belief is never later than the truth that this node could know of: whoever puts a task back
//! lowers it, and only whoever has looked raises it, unless it was lowered since. What another node
//! has put there and could not tell of is found when all ranges are listed again. A wrong belief
//! costs a look or some time, and nothing else.

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
    /// Counts what was heard.
    version: u64,
}

#[derive(Clone, Copy, Debug)]
struct Belief {
    at: i64,
    /// When it was last heard of.
    version: u64,
}

/// A moment in what this node has heard: whoever looks into the table afterwards sees all of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(u64);

/// Where a range starts; nothing if it is empty.
pub(super) type Head = (Range, Option<i64>);

impl Heads {
    /// To be taken before looking into the table.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.beliefs.lock().version)
    }

    /// A task waits here, since a commit.
    pub(super) fn add(&self, range: Range, run_at: i64) {
        let mut beliefs = self.beliefs.lock();
        beliefs.version += 1;
        let known = beliefs.by_range.get(&range).map(|belief| belief.at);
        let at = known.map_or(run_at, |known| known.min(run_at));
        beliefs.set(range, Some(at));
        let version = beliefs.version;
        if let Some(belief) = beliefs.by_range.get_mut(&range) {
            belief.version = version;
        }
    }

    /// What a look into the table has shown that began after this moment.
    pub(super) fn learn(&self, since: Moment, heads: impl IntoIterator<Item = Head>) {
        let mut beliefs = self.beliefs.lock();
        for (range, head) in heads {
            beliefs.learn(since, range, head);
        }
    }

    /// The same for a look at all ranges; those that it did not show are empty. Answers the earliest
    /// start that nobody had told of.
    pub(super) fn learn_all(&self, since: Moment, heads: &HashMap<Range, i64>) -> Option<i64> {
        let mut beliefs = self.beliefs.lock();
        let known = |range: &Range| beliefs.by_range.get(range).map_or(i64::MAX, |it| it.at);
        let news = heads.iter().filter(|(range, at)| **at < known(range)).map(|(_, at)| *at).min();
        let gone: Vec<_> =
            beliefs.by_range.keys().filter(|range| !heads.contains_key(range)).copied().collect();
        for range in gone {
            beliefs.learn(since, range, None);
        }
        for (range, at) in heads {
            beliefs.learn(since, *range, Some(*at));
        }
        news
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

    /// Whether nothing in the lane is due, suspects aside.
    pub(super) fn is_drained(&self, lane: LaneId, now: i64) -> bool {
        let beliefs = self.beliefs.lock();
        let due = |rank| beliefs.by_range.get(&Range { lane, rank }).is_some_and(|it| it.at <= now);
        !(0..RANKS).any(due)
    }
}

impl Beliefs {
    fn learn(&mut self, since: Moment, range: Range, head: Option<i64>) {
        match self.by_range.get(&range).copied() {
            // Something was put there meanwhile that the look may have missed.
            Some(belief) if belief.version > since.0 => {
                let at = head.map_or(belief.at, |head| head.min(belief.at));
                self.set(range, Some(at));
            }
            _ => self.set(range, head),
        }
    }

    fn set(&mut self, range: Range, head: Option<i64>) {
        let known = self.by_range.get(&range).copied();
        if let Some(belief) = known {
            self.by_time.remove(&(belief.at, range));
        }
        match head {
            Some(at) => {
                let version = known.map_or(0, |belief| belief.version);
                self.by_range.insert(range, Belief { at, version });
                self.by_time.insert((at, range));
            }
            None => {
                self.by_range.remove(&range);
            }
        }
    }
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
mod tests {
    use super::*;

    const RANGE: Range = Range { lane: 1, rank: 4 };

    #[test]
    fn a_look_does_not_hide_what_came_meanwhile() {
        let heads = Heads::default();
        let before = heads.moment();
        heads.add(RANGE, 70);
        heads.learn(before, [(RANGE, None)]);
        assert_eq!(heads.next(|_, _| true), Some(70));
        let after = heads.moment();
        heads.learn(after, [(RANGE, Some(90))]);
        assert_eq!(heads.next(|_, _| true), Some(90));
        heads.learn_all(after, &HashMap::default());
        assert_eq!(heads.next(|_, _| true), None);
    }

    #[test]
    fn ranges_come_in_the_order_of_claims() {
        let heads = Heads::default();
        let (urgent, old) = (Range { lane: 1, rank: 0 }, Range { lane: 1, rank: 9 });
        heads.add(urgent, 100);
        heads.add(old, 50);
        heads.add(Range { lane: 2, rank: 0 }, 10);
        assert_eq!(heads.due(100, 1, |lane| lane == 1), [(urgent, 100)]);
        assert_eq!(heads.due(99, 2, |lane| lane == 1), [(old, 50)]);
        assert!(!heads.is_drained(1, 50) && heads.is_drained(1, 49) && heads.is_drained(3, 100));
    }
}
