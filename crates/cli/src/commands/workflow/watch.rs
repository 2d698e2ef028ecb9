//! `duly workflow watch`: the graph, drawn again with every change until the workflow ends. Without a
//! terminal it prints a line per change.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use duly_client::Client;
use duly_client::wire::WorkflowView;
use duly_core::id::WorkflowId;
use duly_core::workflow::WorkflowStatus;

use super::picture::Picture;
use super::{draw, show};
use crate::exit::Ending;
use crate::output;

/// How often the workflow is read.
const POLL: Duration = Duration::from_millis(500);
/// How long to wait while the server is away.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(super) async fn run(client: &Client, id: WorkflowId) -> anyhow::Result<Ending> {
    let mut screen = Screen { is_terminal: std::io::stdout().is_terminal(), ..Screen::default() };
    let mut wait = None;
    loop {
        let workflow = match client.get_workflow(id, wait).await {
            Ok(workflow) => workflow,
            Err(error) if !error.is_retryable() => return Err(error.into()),
            Err(error) => {
                output::say(&format!("{error}; trying again"));
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        screen.show(client, &workflow).await?;
        if workflow.summary.status != WorkflowStatus::Running {
            return Ok(show::ending(&workflow));
        }
        wait = Some(POLL);
    }
}

/// What was drawn last.
#[derive(Default)]
struct Screen {
    is_terminal: bool,
    counts: String,
    lines: usize,
}

impl Screen {
    /// Draws a workflow, if something has changed.
    async fn show(&mut self, client: &Client, workflow: &WorkflowView) -> anyhow::Result<()> {
        let counts = show::counts(workflow);
        if counts == self.counts {
            return Ok(());
        }
        let summary = &workflow.summary;
        let head = format!("{} {} {}: {counts}", summary.workflow_id, summary.name, summary.status);
        if self.is_terminal {
            let graph = client.workflow_graph(summary.workflow_id, true).await?;
            let graph = draw::text(&Picture::of_graph(&graph));
            let text = output::sanitize(&format!("{head}\n{graph}"));
            self.draw(&text);
        } else {
            output::data(&output::sanitize(&head))?;
        }
        self.counts = counts;
        Ok(())
    }

    /// Draws over what was drawn before.
    fn draw(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed standard output is not a failure.
        if self.lines > 0 {
            write!(out, "\x1b[{}F\x1b[J", self.lines).ok();
        }
        write!(out, "{text}").and_then(|()| out.flush()).ok();
        self.lines = text.lines().count();
    }
}
