//! `duly dev`: everything in one process, on one file, on loopback.

use anyhow::Context as _;
use duly_api::{Limits, Tenants};
use duly_core::node::Role;

use super::serving;
use crate::args::DevArgs;
use crate::exit::{Ending, Usage};
use crate::output;
use crate::wiring::{self, DATABASE, Plan, StoreLocation};

pub(crate) fn run(args: &DevArgs) -> anyhow::Result<Ending> {
    if !args.listen.ip().is_loopback() {
        let ip = args.listen.ip();
        return Err(Usage::new(format!(
            "`duly dev` has no keys, so it listens on loopback only, not on {ip}; use 127.0.0.1"
        ))
        .into());
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(serve(args))
}

async fn serve(args: &DevArgs) -> anyhow::Result<Ending> {
    let plan = plan(args);
    if plan.samples {
        output::say(&samples_hint(args));
    }
    let banner =
        |url: Option<&str>, reclaimed| print_banner(args, url.unwrap_or_default(), reclaimed);
    serving::serve(&plan, Some(args.listen), banner).await
}

fn plan(args: &DevArgs) -> Plan {
    Plan {
        name: format!("dev-{}", std::process::id()),
        roles: Role::ALL.to_vec(),
        store: StoreLocation::Sqlite(args.data.join(DATABASE)),
        concurrency: args.concurrency,
        session_ttl: args.session_ttl,
        loss_limit: args.loss_limit,
        outbound: wiring::loopback().to_vec(),
        outbound_ports: None,
        allow_shell: args.allow_shell,
        mailer: Some(wiring::outbox_mailer(&args.data)),
        sources: wiring::memory_source(),
        samples: args.samples && args.concurrency > 0,
        tenants: Tenants::default(),
        auth: None,
        limits: Limits::default(),
        tls: None,
        schedules: None,
        event_file: None,
        #[cfg(feature = "planted-bugs")]
        planted_bug: args.planted_bug,
        #[cfg(feature = "planted-bugs")]
        clock_ahead: args.clock_ahead,
    }
}

/// How to run the samples.
fn samples_hint(args: &DevArgs) -> String {
    let server = match args.listen.port() {
        8080 => String::new(),
        // The port is not known yet; the URL is printed later.
        0 => " --server URL".to_owned(),
        _ => format!(" --server http://{}", args.listen),
    };
    format!(
        "  samples   duly task run daily-report --wait{server}   (or cleanup-temp-files, data-backup)\n            \
         duly schedule list{server}   (each of them also has a schedule)"
    )
}

fn print_banner(args: &DevArgs, url: &str, reclaimed: usize) {
    output::say(&format!("  API docs  {url}/docs"));
    output::say(&format!("  data      {}", args.data.join(DATABASE).display()));
    if reclaimed > 0 {
        let tasks = output::count(u32::try_from(reclaimed).unwrap_or(u32::MAX), "task");
        output::say(&format!("  recovered {tasks} that an earlier process left running"));
    }
    let server =
        if args.listen.port() == 8080 { String::new() } else { format!(" --server {url}") };
    output::say(&format!(
        "  next      duly task run echo -d '{{\"hi\":1}}' --wait{server}   (Ctrl-C stops)"
    ));
}
