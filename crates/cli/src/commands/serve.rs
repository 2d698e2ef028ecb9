//! `duly serve`: one node of many, in the roles it is given.

mod config;

use std::net::SocketAddr;

use anyhow::Context as _;
use duly_core::node::Role;

use self::config::Config;
use super::serving;
use crate::args::ServeArgs;
use crate::exit::{Ending, Usage};
use crate::output;
use crate::telemetry;
use crate::wiring::{Plan, StorePlace};

pub(crate) fn run(args: ServeArgs, verbose: u8) -> anyhow::Result<Ending> {
    let config = Config::read(args)?;
    telemetry::start(verbose, config.log_level);
    let listen = config.plan.is(Role::Api).then_some(config.listen);
    if let Some(listen) = listen {
        check_safe(listen, config.insecure)?;
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let welcome = |url: Option<&str>, reclaimed| welcome(&config.plan, url, reclaimed);
    runtime.block_on(serving::serve(&config.plan, listen, welcome))
}

/// There are no keys yet to tell callers apart by, so only this machine may call, and only if
/// somebody says that this is meant.
fn check_safe(listen: SocketAddr, insecure: bool) -> Result<(), Usage> {
    if !insecure {
        return Err(Usage::new(
            "`duly serve` has no keys to check callers with; --insecure starts it without, on \
             loopback only",
        ));
    }
    if !listen.ip().is_loopback() {
        let ip = listen.ip();
        return Err(Usage::new(format!(
            "--insecure answers whoever reaches the server, so it listens on loopback only, not on \
             {ip}; use 127.0.0.1"
        )));
    }
    Ok(())
}

fn welcome(plan: &Plan, url: Option<&str>, reclaimed: usize) {
    let roles: Vec<_> = plan.roles.iter().map(|role| role.as_str()).collect();
    output::say(&format!("  node      {} ({})", plan.name, roles.join(", ")));
    let store = match &plan.store {
        StorePlace::Sqlite(path) => path.display().to_string(),
        StorePlace::Postgres(_) => "PostgreSQL".to_owned(),
    };
    output::say(&format!("  store     {store}"));
    if reclaimed > 0 {
        let tasks = output::count(u32::try_from(reclaimed).unwrap_or(u32::MAX), "task");
        output::say(&format!("  recovered {tasks} that an earlier process left running"));
    }
    match url {
        Some(url) => {
            output::say(&format!("  API docs  {url}/docs"));
            output::say(&format!("  next      duly node list --server {url}   (Ctrl-C stops)"));
        }
        None => output::say("  next      it works by itself   (Ctrl-C stops)"),
    }
}
