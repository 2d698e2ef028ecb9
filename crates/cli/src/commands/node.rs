//! `duly node …`: the processes of the server.

use duly_client::wire::{NodeList, NodeView};

use super::connect;
use crate::args::{NodeCommand, NodeListArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: NodeCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            NodeCommand::List(args) => list(&args).await,
        }
    })
}

async fn list(args: &NodeListArgs) -> anyhow::Result<Ending> {
    let nodes = connect(&args.client)?.list_nodes().await?;
    match args.client.output {
        Output::Json => output::json(&nodes)?,
        Output::Table => {
            output::data(&table_of(&nodes.items))?;
            output::say(&leads(&nodes));
        }
        Output::Id => {
            for node in &nodes.items {
                output::data(&node.node_id.to_string())?;
            }
        }
    }
    Ok(Ending::Ok)
}

fn leads(nodes: &NodeList) -> String {
    match &nodes.leader {
        Some(leader) => format!("node {} leads, term {}", leader.node_id, leader.term),
        None => "no node leads now; one will within seconds, if a scheduler runs".to_owned(),
    }
}

fn table_of(nodes: &[NodeView]) -> String {
    let mut table =
        output::table(&["id", "name", "roles", "version", "address", "last beat", "leads"]);
    for node in nodes {
        table.add_row([
            node.node_id.to_string(),
            node.name.clone(),
            node.roles.join(","),
            node.version.clone(),
            node.address.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{:.1} s ago", node.beat_age_seconds),
            if node.is_leader { "yes" } else { "-" }.to_owned(),
        ]);
    }
    output::trimmed(&table)
}
