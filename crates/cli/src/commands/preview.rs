//! Preview and confirmation of an action on many tasks.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use duly_client::wire::BulkPreview;

use crate::args::Output;
use crate::exit::Usage;
use crate::output;

/// An action on many tasks.
pub(super) struct Action {
    /// Such as "replay".
    pub(super) verb: &'static str,
    /// Its object, such as "task".
    pub(super) noun: &'static str,
    /// Whether it cannot be undone, so that it always needs confirmation.
    pub(super) is_irreversible: bool,
}

impl Action {
    /// Prints what the action would do.
    pub(super) fn print_preview(&self, found: &BulkPreview, format: Output) -> anyhow::Result<()> {
        match format {
            Output::Json => output::json(found)?,
            Output::Id => {
                for id in &found.sample {
                    output::data(&id.to_string())?;
                }
            }
            Output::Table => output::data(&format!("would {}", self.describe(found)))?,
        }
        if let (Some(id), Output::Table) = (found.sample.first(), format) {
            output::say(&format!("such as {id}; next: run it without --dry-run"));
        }
        Ok(())
    }

    /// Whether to ask the user. Without a terminal, an irreversible action needs `--yes`.
    pub(super) fn needs_confirmation(&self, yes: bool) -> Result<bool, Usage> {
        let is_interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if self.is_irreversible && !yes && !is_interactive {
            let verb = self.verb;
            return Err(Usage::new(format!(
                "a {verb} cannot be undone, and there is no terminal to ask on; pass --yes to confirm, or \
                 --dry-run to see what it would do"
            )));
        }
        Ok(is_interactive && !yes)
    }

    /// Asks the user to confirm the action.
    pub(super) fn confirm(&self, found: &BulkPreview) -> anyhow::Result<bool> {
        let permanently = if self.is_irreversible { " permanently" } else { "" };
        let question = format!("{}{permanently}? [y/N] ", self.describe(found));
        let mut stderr = std::io::stderr().lock();
        write!(stderr, "{}", output::sanitize(&question))?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        drop(stderr);
        if !is_yes {
            output::say("nothing was changed");
        }
        Ok(is_yes)
    }

    fn describe(&self, found: &BulkPreview) -> String {
        let least = if found.more { "at least " } else { "" };
        format!("{} {least}{}", self.verb, output::count(found.count, self.noun))
    }
}
