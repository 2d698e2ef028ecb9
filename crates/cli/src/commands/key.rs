//! `duly key …`: create, list and revoke API keys.

use duly_client::wire::{KeyRequest, KeyView};

use super::connect;
use crate::args::{KeyCommand, KeyCreateArgs, KeyListArgs, KeyRevokeArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: KeyCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            KeyCommand::Create(args) => create(args).await,
            KeyCommand::List(args) => list(&args).await,
            KeyCommand::Revoke(args) => revoke(&args).await,
        }
    })
}

async fn create(args: KeyCreateArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let request = KeyRequest {
        name: args.name,
        roles: args.roles,
        tenant: args.tenant,
        queues: args.queues,
        types: args.types,
        expires_in_seconds: args.expires_in.map(|period| period.as_secs_f64()),
    };
    let created = client.create_key(&request).await?;
    match args.client.output {
        Output::Json => output::json(&created)?,
        // The secret alone, so that it can go straight into a file.
        Output::Table => output::data(&created.secret)?,
        Output::Id => output::data(&created.key.key_id)?,
    }
    let id = &created.key.key_id;
    if args.client.output == Output::Id {
        output::say("the secret of this key is lost; without -o id it is printed");
    } else {
        output::say(
            "this secret is shown once: store it now, in a file that only its user can read",
        );
    }
    output::say(&format!("next: DULY_TOKEN=… duly task list   or: duly key revoke {id}"));
    Ok(Ending::Ok)
}

async fn list(args: &KeyListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let (limit, cursor) = (Some(args.limit), args.cursor.as_deref());
    let page = client.list_keys(args.installation, limit, cursor).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no keys; next: duly key create NAME --role submitter");
        }
        Output::Table => output::data(&table_of(&page.items))?,
        Output::Id => {
            for key in &page.items {
                output::data(&key.key_id)?;
            }
        }
    }
    if args.client.output != Output::Json {
        if let Some(cursor) = &page.next_cursor {
            output::say(&format!("more: duly key list --cursor {cursor}"));
        } else if let Some(key) = page.items.iter().find(|key| key.revoked_at.is_none()) {
            output::say(&format!("next: duly key revoke {}", key.key_id));
        }
    }
    Ok(Ending::Ok)
}

async fn revoke(args: &KeyRevokeArgs) -> anyhow::Result<Ending> {
    let key = connect(&args.client)?.revoke_key(&args.id).await?;
    match args.client.output {
        Output::Json => output::json(&key)?,
        Output::Table => output::data(&table_of(std::slice::from_ref(&key)))?,
        Output::Id => output::data(&key.key_id)?,
    }
    output::say("every node refuses it within 5 seconds; next: duly key list");
    Ok(Ending::Ok)
}

fn table_of(keys: &[KeyView]) -> String {
    let header = ["id", "name", "tenant", "roles", "only", "last used", "expires", "state"];
    let mut table = output::table(&header).shorten(&["name", "only"], 12).leave_out(&[
        "expires",
        "only",
        "last used",
    ]);
    for key in keys {
        let only: Vec<_> = key.queues.iter().chain(&key.types).map(String::as_str).collect();
        let state = if key.revoked_at.is_some() { "revoked" } else { "active" };
        table.add_row([
            key.key_id.clone(),
            key.name.clone(),
            key.tenant.clone(),
            key.roles.join(","),
            if only.is_empty() { "-".to_owned() } else { only.join(",") },
            output::instant(key.last_used_at),
            output::instant(key.expires_at),
            state.to_owned(),
        ]);
    }
    output::render(&table)
}
