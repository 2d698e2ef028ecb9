//! `duly node …`: the nodes of the server.

use duly_client::wire::{NodeLife, NodeList, NodeView};

use super::connect;
use crate::args::{NodeCommand, NodeListArgs, Output};
use crate::exit::Ending;
use crate::output::{self, Paint};

/// Nodes that were silent for this many seconds are shown only with `--all`.
const HIDDEN_AFTER: f64 = 600.0;

pub(crate) fn run(command: NodeCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            NodeCommand::List(args) => list(&args).await,
        }
    })
}

async fn list(args: &NodeListArgs) -> anyhow::Result<Ending> {
    let mut nodes = connect(&args.client)?.list_nodes().await?;
    let known = nodes.items.len();
    if !args.all {
        nodes.items.retain(|node| node.beat_age_seconds < HIDDEN_AFTER);
    }
    let hidden = (known - nodes.items.len()) as u64;
    match args.client.output {
        Output::Json => output::json(&nodes)?,
        Output::Table => {
            output::data(&table_of(&nodes.items))?;
            output::say(&leader_line(&nodes));
            if hidden > 0 {
                let dead = output::count(hidden, "node");
                output::say(&format!("{dead} silent for more than 10 minutes; --all shows them"));
            }
        }
        Output::Id => {
            for node in &nodes.items {
                output::data(&node.node_id.to_string())?;
            }
        }
    }
    Ok(Ending::Ok)
}

fn leader_line(nodes: &NodeList) -> String {
    match &nodes.leader {
        Some(leader) => format!("node {} leads, term {}", leader.node_id, leader.term),
        None => "no node leads now; one will within seconds if a node with the role scheduler runs"
            .to_owned(),
    }
}

fn table_of(nodes: &[NodeView]) -> String {
    let header = ["id", "name", "state", "leads", "roles", "version", "address", "last heartbeat"];
    let mut table = output::table(&header)
        .shorten(&["name"], 12)
        .leave_out(&["version", "roles", "last heartbeat", "address"])
        .paint("state", Paint::HEALTH);
    for node in nodes {
        table.add_row([
            node.node_id.to_string(),
            node.name.clone(),
            match node.state {
                NodeLife::Alive => "alive",
                NodeLife::Silent => "silent",
            }
            .to_owned(),
            if node.is_leader { "yes" } else { "-" }.to_owned(),
            node.roles.join(","),
            node.version.clone(),
            node.address.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{:.1} s ago", node.beat_age_seconds),
        ]);
    }
    output::render(&table)
}
