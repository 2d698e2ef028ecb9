//! `duly settings …`: the settings of the installation.

mod show;

use duly_client::wire::{RollbackRequest, SettingsAnswer};
use duly_client::{Client, Error};

pub(super) use self::show::period;
use self::show::{print, table};
use crate::args::{
    Output, SettingsCommand, SettingsGetArgs, SettingsHistoryArgs, SettingsRollbackArgs,
    SettingsSetArgs,
};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: SettingsCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            SettingsCommand::Get(args) => get(&args).await,
            SettingsCommand::Set(args) => set(&args).await,
            SettingsCommand::History(args) => history(&args).await,
            SettingsCommand::Rollback(args) => roll_back(&args).await,
        }
    })
}

async fn get(args: &SettingsGetArgs) -> anyhow::Result<Ending> {
    let settings = connect(&args.client)?.get_settings().await?;
    print(&settings, args.client.output)?;
    output::say("next: duly settings set KEY=VALUE, such as workerConcurrency=32");
    Ok(Ending::Ok)
}

async fn set(args: &SettingsSetArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let change = async |before: SettingsAnswer| {
        let mut settings = before.current.settings;
        for setting in &args.changes {
            setting.apply(&mut settings);
        }
        let request = settings.into_request(args.comment.clone());
        client.put_settings(before.current.version, &request).await
    };
    let (before, after) = change_newest(&client, change).await?;
    print(&after, args.client.output)?;
    output::say(&format!("next: duly settings rollback {before}   (undoes it)"));
    Ok(Ending::Ok)
}

async fn roll_back(args: &SettingsRollbackArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let request = RollbackRequest { version: args.version, comment: args.comment.clone() };
    let change = async |before: SettingsAnswer| {
        client.roll_back_settings(before.current.version, &request).await
    };
    let (before, after) = change_newest(&client, change).await?;
    print(&after, args.client.output)?;
    output::say(&format!("next: duly settings rollback {before}   (undoes it)"));
    Ok(Ending::Ok)
}

/// Reads, changes and writes the settings; once more after a concurrent change. Also returns the
/// version before.
async fn change_newest(
    client: &Client,
    change: impl AsyncFn(SettingsAnswer) -> Result<SettingsAnswer, Error>,
) -> anyhow::Result<(u64, SettingsAnswer)> {
    let before = client.get_settings().await?;
    let version = before.current.version;
    match change(before).await {
        Err(error) if error.code() == Some("VERSION_MISMATCH") => {
            let before = client.get_settings().await?;
            Ok((before.current.version, change(before).await?))
        }
        answer => Ok((version, answer?)),
    }
}

async fn history(args: &SettingsHistoryArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.settings_history(Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => output::say("the settings were never changed"),
        Output::Table => output::data(&table(&page.items))?,
        Output::Id => {
            for version in &page.items {
                output::data(&version.version.to_string())?;
            }
        }
    }
    match &page.next_cursor {
        Some(cursor) if args.client.output != Output::Json => {
            output::say(&format!("more: duly settings history --cursor {cursor}"));
        }
        _ => output::say("next: duly settings rollback VERSION   (0 for the defaults)"),
    }
    Ok(Ending::Ok)
}
