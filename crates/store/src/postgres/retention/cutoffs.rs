//! The condition that a task ended so long ago that it may go.

use duly_core::ports::store::{self, Sweep};
use duly_core::time::Timestamp;

use crate::postgres::filter::Parameter;

/// Before which times tasks must have ended to be deleted, by how they ended.
#[derive(Clone, Debug)]
pub(in crate::postgres) struct Cutoffs {
    /// Of SUCCESS, FAILED and CANCELLED.
    usual: [Option<i64>; 3],
    /// Tenants with a retention of their own; none if there is no such tenant.
    tenants: Option<Vec<String>>,
    /// Theirs, in the same places.
    own: [Vec<Option<i64>>; 3],
}

/// Whether a row with this status and this time of its end has ended so early; unknown if it is kept for
/// ever. The lanes of tenants with cutoffs of their own are looked up once per statement, and not at all
/// if there is no such tenant.
macro_rules! passed {
    ($status:literal, $ended:literal) => {
        concat!(
            $ended,
            " < CASE WHEN $4::text[] IS NULL OR ",
            $status,
            " NOT IN (3, 4, 5)
            THEN CASE ",
            $status,
            " WHEN 3 THEN $1::bigint WHEN 4 THEN $2::bigint WHEN 5 THEN $3::bigint END
            ELSE (coalesce(
                (SELECT jsonb_object_agg(l.id, jsonb_build_array(o.success, o.failed, o.cancelled))
                 FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
                          o(tenant, success, failed, cancelled)
                 JOIN duly.lane l ON l.tenant = o.tenant) -> lane::text,
                jsonb_build_array($1::bigint, $2::bigint, $3::bigint)) ->> (",
            $status,
            " - 3))::bigint END"
        )
    };
}

impl Cutoffs {
    /// Whether a task has ended so early; unknown for one that has not ended or is kept for ever.
    /// Takes [`Self::parameters`] as the first seven.
    pub(in crate::postgres) const PASSED: &str = passed!("status", "finished_at");

    /// The same of a dead letter.
    pub(super) const DEAD_PASSED: &str = passed!("4", "failed_at");

    pub(super) fn of(sweep: &Sweep) -> Self {
        let names = sweep.tenants.keys().map(ToString::to_string);
        let tenants = (!sweep.tenants.is_empty()).then(|| names.collect());
        let mut own = <[Vec<Option<i64>>; 3]>::default();
        for cutoffs in sweep.tenants.values() {
            for (times, time) in own.iter_mut().zip(millis(cutoffs)) {
                times.push(time);
            }
        }
        Self { usual: millis(&sweep.cutoffs), tenants, own }
    }

    pub(in crate::postgres) fn parameters(&self) -> [Parameter<'_>; 7] {
        let ([success, failed, cancelled], [own_success, own_failed, own_cancelled]) =
            (&self.usual, &self.own);
        [success, failed, cancelled, &self.tenants, own_success, own_failed, own_cancelled]
    }
}

fn millis(cutoffs: &store::Cutoffs) -> [Option<i64>; 3] {
    let store::Cutoffs { success, failed, cancelled } = cutoffs;
    [success, failed, cancelled].map(|before| before.map(Timestamp::millis))
}
