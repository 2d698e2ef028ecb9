//! A real write that changes nothing anybody reads: does the disk take it?

use super::{Scope, Verb};
use crate::sqlite::error::Result;

pub(in crate::sqlite) struct Probe;

/// About what a busy commit writes.
const BULK_BYTES: u32 = 256 * 1024;

impl Verb for Probe {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> Result<()> {
        scope.connection.execute(
            "/* probe */ UPDATE probe SET count = count + 1, bulk = randomblob(?)",
            [BULK_BYTES],
        )?;
        Ok(())
    }
}
