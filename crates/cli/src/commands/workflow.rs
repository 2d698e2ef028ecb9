//! `duly workflow …`: tasks that depend on each other.

mod draw;
mod file;
mod picture;
mod show;
mod watch;

use std::path::Path;
use std::time::{Duration, Instant};

use duly_client::wire::{CancelRequest, WorkflowView};
use duly_client::{Client, WorkflowQuery};
use duly_core::id::WorkflowId;
use duly_core::limits::WAIT;
use duly_core::workflow::WorkflowStatus;

use self::picture::Picture;
use super::connect;
use crate::args::{
    GraphOutput, Output, WorkflowCancelArgs, WorkflowCommand, WorkflowFileArgs, WorkflowGraphArgs,
    WorkflowIdArgs, WorkflowListArgs, WorkflowRunArgs, WorkflowWatchArgs,
};
use crate::exit::{Ending, Usage};
use crate::output;

pub(crate) fn run(command: WorkflowCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            WorkflowCommand::Validate(args) => validate(&args),
            WorkflowCommand::Run(args) => submit(&args).await,
            WorkflowCommand::List(args) => list(&args).await,
            WorkflowCommand::Get(args) => get(&args).await,
            WorkflowCommand::Watch(args) => follow(&args).await,
            WorkflowCommand::Graph(args) => graph(&args).await,
            WorkflowCommand::Cancel(args) => cancel(&args).await,
            WorkflowCommand::Retry(args) => retry(&args).await,
        }
    })
}

fn validate(args: &WorkflowFileArgs) -> anyhow::Result<Ending> {
    let Some(file) = file::read(&args.file)? else { return Ok(Ending::Unsuccessful) };
    let tasks = file.spec.members.tasks();
    let edges: usize = file.spec.members.plan().parents.iter().map(Vec::len).sum();
    let path = args.file.display();
    let (tasks, edges) = (output::count(tasks.len() as u64, "task"), edges as u64);
    output::say(&format!("{path}: {tasks}, {}", output::count(edges, "edge")));
    output::say(&format!("next: duly workflow run {path} --wait"));
    Ok(Ending::Ok)
}

async fn submit(args: &WorkflowRunArgs) -> anyhow::Result<Ending> {
    let Some(file) = file::read(&args.file)? else { return Ok(Ending::Unsuccessful) };
    let client = connect(&args.client)?;
    let taken = client.submit_workflow(file.body).await?;
    let id = taken.workflow_id;
    if args.watch {
        return watch::run(&client, id).await;
    }
    let Some(patience) = args.wait else {
        match args.client.output {
            Output::Json => output::json(&taken)?,
            Output::Id => output::data(&id.to_string())?,
            Output::Table => show::print(&client.get_workflow(id, None).await?, Output::Table)?,
        }
        output::say(&format!("next: duly workflow watch {id}"));
        return Ok(Ending::Ok);
    };
    let workflow = wait(&client, id, patience).await?;
    show::print(&workflow, args.client.output)?;
    if workflow.summary.status == WorkflowStatus::Running {
        output::say(&format!(
            "not finished after {patience:?}; it continues; next: duly workflow watch {id}"
        ));
        return Ok(Ending::WaitedTooLong);
    }
    Ok(show::ending(&workflow))
}

async fn wait(
    client: &Client,
    id: WorkflowId,
    patience: Duration,
) -> Result<WorkflowView, duly_client::Error> {
    let start = Instant::now();
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let workflow = client.get_workflow(id, Some(left.min(WAIT))).await?;
        let is_over = workflow.summary.status != WorkflowStatus::Running;
        if is_over || start.elapsed() >= patience {
            return Ok(workflow);
        }
    }
}

async fn list(args: &WorkflowListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let query = WorkflowQuery {
        status: args.status.clone(),
        name: args.name.clone(),
        limit: Some(args.limit),
        cursor: args.cursor.clone(),
    };
    let page = client.list_workflows(&query).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no workflows; next: duly workflow run FILE");
        }
        Output::Table => output::data(&show::table(&page.items))?,
        Output::Id => {
            for workflow in &page.items {
                output::data(&workflow.workflow_id.to_string())?;
            }
        }
    }
    if let (Some(cursor), true) = (&page.next_cursor, args.client.output != Output::Json) {
        output::say(&format!("more: duly workflow list --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}

async fn get(args: &WorkflowIdArgs) -> anyhow::Result<Ending> {
    let workflow = connect(&args.client)?.get_workflow(args.id, None).await?;
    show::print(&workflow, args.client.output)?;
    output::say(&format!("next: duly workflow graph {}", args.id));
    Ok(Ending::Ok)
}

async fn follow(args: &WorkflowWatchArgs) -> anyhow::Result<Ending> {
    let client = args.server.connect()?;
    watch::run(&client, args.id).await
}

async fn graph(args: &WorkflowGraphArgs) -> anyhow::Result<Ending> {
    let picture = match args.source.parse::<WorkflowId>() {
        Ok(id) => {
            let client = args.server.connect()?;
            Picture::of_graph(&client.workflow_graph(id, !args.all).await?)
        }
        Err(_) if Path::new(&args.source).exists() => {
            let Some(file) = file::read(Path::new(&args.source))? else {
                return Ok(Ending::Unsuccessful);
            };
            Picture::of_spec(&file.spec)
        }
        Err(_) => {
            let usage = format!("{} is neither the id of a workflow nor a file", args.source);
            return Err(Usage::new(usage).into());
        }
    };
    let text = match args.output {
        GraphOutput::Text => draw::text(&picture),
        GraphOutput::Dot => draw::dot(&picture),
        GraphOutput::Mermaid => draw::mermaid(&picture),
        GraphOutput::Svg => draw::svg(&picture),
    };
    output::data(text.trim_end())?;
    Ok(Ending::Ok)
}

async fn cancel(args: &WorkflowCancelArgs) -> anyhow::Result<Ending> {
    let order = CancelRequest { reason: args.reason.clone() };
    let workflow = connect(&args.client)?.cancel_workflow(args.id, &order).await?;
    show::print(&workflow, args.client.output)?;
    output::say(&format!("cancelled; next: duly workflow get {}", args.id));
    Ok(Ending::Ok)
}

async fn retry(args: &WorkflowIdArgs) -> anyhow::Result<Ending> {
    let workflow = connect(&args.client)?.retry_workflow(args.id).await?;
    show::print(&workflow, args.client.output)?;
    output::say(&format!("next: duly workflow watch {}", args.id));
    Ok(Ending::Ok)
}
