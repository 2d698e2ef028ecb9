//! `duly serve`: a node of a cluster, with its roles.

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
use crate::wiring::{Plan, StoreLocation};

pub(crate) fn run(args: ServeArgs, verbose: u8) -> anyhow::Result<Ending> {
    let config = Config::read(args)?;
    telemetry::start(verbose, config.log_level);
    let listen = config.plan.has_role(Role::Api).then_some(config.listen);
    if let Some(listen) = listen {
        check_insecure(listen, config.insecure)?;
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let banner = |url: Option<&str>, reclaimed| print_banner(&config.plan, url, reclaimed);
    runtime.block_on(serving::serve(&config.plan, listen, banner))
}

/// There are no keys yet to authenticate callers, so the node accepts only this machine, and only
/// with `--insecure`.
fn check_insecure(listen: SocketAddr, insecure: bool) -> Result<(), Usage> {
    if !insecure {
        return Err(Usage::new(
            "`duly serve` has no keys to authenticate callers; pass --insecure to start it without, \
             on loopback only",
        ));
    }
    if !listen.ip().is_loopback() {
        let ip = listen.ip();
        return Err(Usage::new(format!(
            "--insecure accepts every client, so it listens on loopback only, not on {ip}; use \
             127.0.0.1"
        )));
    }
    Ok(())
}

fn print_banner(plan: &Plan, url: Option<&str>, reclaimed: usize) {
    let roles: Vec<_> = plan.roles.iter().map(|role| role.as_str()).collect();
    output::say(&format!("  node      {} ({})", plan.name, roles.join(", ")));
    let store = match &plan.store {
        StoreLocation::Sqlite(path) => path.display().to_string(),
        StoreLocation::Postgres(_) => "PostgreSQL".to_owned(),
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
        None => output::say("  next      nothing to do   (Ctrl-C stops)"),
    }
}
