//! How long the disk takes to sync: what a single task waits for.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::Instant;

use super::figures::percentiles;
use super::run::Run;

/// Syncs of each kind.
const SYNCS: usize = 1000;
/// About what the commit of a single task adds to the log.
const BYTES: usize = 3 * 4096;
pub(super) const STEPS: usize = 1;

pub(super) fn measure(run: &mut Run, folder: &Path) -> anyhow::Result<()> {
    run.step(&format!("disk: {SYNCS} syncs"));
    let path = folder.join("disk");
    let mut file = std::fs::File::create_new(&path)?;
    let mut millis = [Vec::with_capacity(SYNCS), Vec::with_capacity(SYNCS)];
    // The first pass makes the file longer, the second overwrites it.
    for millis in &mut millis {
        file.rewind()?;
        for _ in 0..SYNCS {
            let start = Instant::now();
            file.write_all(&[7; BYTES])?;
            file.sync_data()?;
            millis.push(start.elapsed().as_secs_f64() * 1000.0);
        }
    }
    let [longer, overwrite] = millis;
    run.figures.extend(percentiles("disk: sync, file gets longer", 99, longer));
    run.figures.extend(percentiles("disk: sync, overwriting", 99, overwrite));
    Ok(std::fs::remove_file(path)?)
}
