//! `duly workflow watch`: the graph, drawn again with every change until the workflow ends. Without a
//! terminal it prints a line per change.

use std::io::{IsTerminal as _, Write as _};

use duly_client::wire::WorkflowView;
use duly_client::{Client, StreamItem, StreamQuery};
use duly_core::id::WorkflowId;
use duly_core::workflow::WorkflowStatus;

use super::picture::Picture;
use super::{draw, show};
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(client: &Client, id: WorkflowId) -> anyhow::Result<Ending> {
    let mut screen = Screen { is_terminal: std::io::stdout().is_terminal(), ..Screen::default() };
    let query = StreamQuery { topics: vec![format!("workflow:{id}")], ..StreamQuery::default() };
    let mut stream = client.follow_later(query);
    loop {
        let workflow = match stream.next().await? {
            StreamItem::Workflow(workflow) => workflow,
            // The answer says why.
            StreamItem::Gone(_) => Box::new(client.get_workflow(id, None).await?),
            StreamItem::Interrupted(why) => {
                output::say(&format!("{why}; trying again"));
                continue;
            }
            _ => continue,
        };
        screen.show(client, &workflow).await?;
        if workflow.summary.status != WorkflowStatus::Running {
            return Ok(show::ending(&workflow));
        }
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
