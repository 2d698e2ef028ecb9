//! `duly restore`: replaces a database with a backup.

use crate::args::RestoreArgs;
use crate::exit::Ending;
use crate::{output, wiring};

pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<Ending> {
    let restored = wiring::restore_directory(&args.file, &args.data, args.replace)?;
    let tasks = output::count(restored.tasks, "task");
    output::say(&format!("restored {tasks} into {}", args.data.display()));
    if let Some(replaced) = restored.replaced {
        output::say(&format!("the previous database is now {}", replaced.display()));
    }
    output::say(&format!("next: duly dev --data {}", args.data.display()));
    Ok(Ending::Ok)
}
