//! What an order for many tasks would do, and asking a person before it is done.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use duly_client::wire::BulkPreview;

use crate::args::Output;
use crate::exit::Usage;
use crate::output;

/// Something that is done to many tasks.
pub(super) struct Order {
    /// Such as "replay".
    pub(super) verb: &'static str,
    /// To what, such as "task".
    pub(super) noun: &'static str,
    /// Whether it cannot be undone, so that it needs a yes in any case.
    pub(super) is_final: bool,
}

impl Order {
    /// Prints what it would do.
    pub(super) fn show(&self, found: &BulkPreview, format: Output) -> anyhow::Result<()> {
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
            output::say(&format!("such as {id}; next: the same without --dry-run"));
        }
        Ok(())
    }

    /// Whether a person has to be asked. Where there is none, an order that cannot be undone is
    /// refused.
    pub(super) fn must_ask(&self, yes: bool) -> Result<bool, Usage> {
        let is_interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if self.is_final && !yes && !is_interactive {
            let verb = self.verb;
            return Err(Usage::new(format!(
                "a {verb} is for ever and there is no terminal to ask on: confirm it with --yes, or \
                 see what it would do with --dry-run"
            )));
        }
        Ok(is_interactive && !yes)
    }

    /// Asks whether to do it. Without a yes it is not done.
    pub(super) fn ask(&self, found: &BulkPreview) -> anyhow::Result<bool> {
        let for_ever = if self.is_final { " for ever" } else { "" };
        let question = format!("{}{for_ever}? [y/N] ", self.describe(found));
        let mut talk = std::io::stderr().lock();
        write!(talk, "{}", output::harmless(&question))?;
        talk.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        drop(talk);
        if !is_yes {
            output::say("nothing was done");
        }
        Ok(is_yes)
    }

    fn describe(&self, found: &BulkPreview) -> String {
        let least = if found.more { "at least " } else { "" };
        format!("{} {least}{}", self.verb, output::count(found.count, self.noun))
    }
}
