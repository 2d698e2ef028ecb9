//! `duly tenant …`: quotas, settings and suspension of tenants.

use duly_client::wire::{OwnRetentionView, PauseRequest, TenantRequest, TenantView};
use duly_client::{Client, Error};

use super::connect;
use super::settings::period;
use crate::args::{
    Output, TenantCommand, TenantListArgs, TenantNameArgs, TenantPutArgs, TenantSuspendArgs,
};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: TenantCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            TenantCommand::List(args) => list(&args).await,
            TenantCommand::Get(args) => get(&args).await,
            TenantCommand::Put(args) => put(&args).await,
            TenantCommand::Suspend(args) => suspend(args).await,
            TenantCommand::Resume(args) => resume(&args).await,
        }
    })
}

async fn list(args: &TenantListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_tenants(Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no tenant has a record; next: duly tenant put TENANT waitingTasks=100000");
        }
        Output::Table => output::data(&table_of(&page.items))?,
        Output::Id => {
            for tenant in &page.items {
                output::data(&tenant.tenant)?;
            }
        }
    }
    if args.client.output != Output::Json {
        if let Some(cursor) = &page.next_cursor {
            output::say(&format!("more: duly tenant list --cursor {cursor}"));
        } else if let Some(first) = page.items.first() {
            output::say(&format!("next: duly tenant get {}", first.tenant));
        }
    }
    Ok(Ending::Ok)
}

async fn get(args: &TenantNameArgs) -> anyhow::Result<Ending> {
    let tenant = connect(&args.client)?.get_tenant(&args.name).await?;
    print(&tenant, args.client.output)?;
    let next = if tenant.suspended_at.is_some() { "resume" } else { "suspend" };
    output::say(&format!("next: duly tenant {next} {}", tenant.tenant));
    Ok(Ending::Ok)
}

async fn put(args: &TenantPutArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let tenant = match change(&client, args).await {
        // Another admin has changed it in between.
        Err(error) if error.code() == Some("VERSION_MISMATCH") => change(&client, args).await?,
        answer => answer?,
    };
    print(&tenant, args.client.output)?;
    output::say(&format!("next: duly tenant get {}", tenant.tenant));
    Ok(Ending::Ok)
}

/// Reads the record, applies the changes and writes it.
async fn change(client: &Client, args: &TenantPutArgs) -> Result<TenantView, Error> {
    let before = match client.get_tenant(&args.name).await {
        Ok(before) => Some(before),
        Err(error) if error.code() == Some("TENANT_NOT_FOUND") => None,
        Err(error) => return Err(error),
    };
    let version = before.as_ref().map(|before| before.version);
    let mut tenant = before.unwrap_or_else(|| nothing(&args.name));
    for change in &args.changes {
        change.apply(&mut tenant);
    }
    let request = TenantRequest {
        note: args.note.clone().or(tenant.note),
        quotas: Some(tenant.quotas),
        settings: Some(tenant.settings),
    };
    client.put_tenant(&args.name, &request, version).await
}

/// A tenant without a record.
fn nothing(name: &str) -> TenantView {
    TenantView {
        tenant: name.to_owned(),
        version: 0,
        suspended_at: None,
        note: None,
        quotas: duly_client::wire::QuotasView::default(),
        settings: duly_client::wire::TenantSettingsView::default(),
        created_at: duly_core::time::Timestamp::EPOCH,
    }
}

async fn suspend(args: TenantSuspendArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let tenant = client.suspend_tenant(&args.name, &PauseRequest { note: args.note }).await?;
    print(&tenant, args.client.output)?;
    output::say(&format!("next: duly tenant resume {}", tenant.tenant));
    Ok(Ending::Ok)
}

async fn resume(args: &TenantNameArgs) -> anyhow::Result<Ending> {
    let tenant = connect(&args.client)?.resume_tenant(&args.name).await?;
    print(&tenant, args.client.output)?;
    output::say(&format!("next: duly tenant get {}", tenant.tenant));
    Ok(Ending::Ok)
}

fn print(tenant: &TenantView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(tenant),
        Output::Table => output::data(&table_of(std::slice::from_ref(tenant))),
        Output::Id => output::data(&tenant.tenant),
    }
}

fn table_of(tenants: &[TenantView]) -> String {
    let header = [
        "tenant",
        "waiting",
        "submits/s",
        "payload",
        "schedules",
        "workflows",
        "retries",
        "retention",
        "redacted",
        "state",
    ];
    let mut table = output::table(&header).shorten(&["state"], 12).leave_out(&[
        "retention",
        "retries",
        "redacted",
        "workflows",
        "schedules",
        "payload",
    ]);
    let number = |number: Option<u32>| number.map_or("-".to_owned(), |it| it.to_string());
    for tenant in tenants {
        let (quotas, settings) = (&tenant.quotas, &tenant.settings);
        let state = if tenant.suspended_at.is_some() { "suspended" } else { "active" };
        let note = tenant.note.as_deref().unwrap_or_default();
        table.add_row([
            tenant.tenant.clone(),
            number(quotas.waiting_tasks),
            number(quotas.submits_per_second),
            number(quotas.payload_bytes),
            number(quotas.schedules),
            number(quotas.workflows),
            number(settings.retries),
            settings.retention.map_or("-".to_owned(), kept),
            settings.redact.as_ref().map_or("-".to_owned(), |paths| paths.len().to_string()),
            format!("{state} {note}").trim_end().to_owned(),
        ]);
    }
    output::render(&table)
}

/// What a tenant's own retention sets, in the form of `duly tenant put`.
fn kept(retention: OwnRetentionView) -> String {
    let OwnRetentionView { success_seconds, failed_seconds, cancelled_seconds } = retention;
    let all = [
        ("success", success_seconds),
        ("failed", failed_seconds),
        ("cancelled", cancelled_seconds),
    ];
    let own = all.into_iter().filter_map(|(name, own)| Some(format!("{name}={}", period(own?))));
    own.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_tenant_sets_is_shown() {
        let retention = OwnRetentionView {
            success_seconds: Some(Some(86_400.0)),
            failed_seconds: Some(None),
            cancelled_seconds: None,
        };
        assert_eq!(kept(retention), "success=1d failed=forever");
    }
}
