//! `duly serve`: a node of a cluster, with its roles.

mod config;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use duly_api::AuthConfig;
use duly_core::node::Role;

use self::config::Config;
use super::serving;
use crate::args::ServeArgs;
use crate::exit::{Ending, Usage};
use crate::output;
use crate::telemetry;
use crate::wiring::{Plan, StoreLocation, check_privilege};

pub(crate) fn run(args: ServeArgs, verbose: u8) -> anyhow::Result<Ending> {
    let config = Config::read(args)?;
    telemetry::start(verbose, config.log_level);
    let listen = config.plan.has_role(Role::Api).then_some(config.listen);
    if let Some(listen) = listen {
        check_access(listen, config.insecure, config.plan.auth.is_some())?;
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    if !(config.insecure || config.allow_owner) {
        runtime.block_on(check_privilege(&config.plan.store))?;
    }
    let banner = |url: Option<&str>, reclaimed| print_banner(&config.plan, url, reclaimed);
    runtime.block_on(serving::serve(&config.plan, listen, banner))
}

/// The keys for tokens in a configuration file.
pub(crate) fn read_auth(file: &Path) -> anyhow::Result<Option<AuthConfig>> {
    config::read_auth(file)
}

/// Without keys every caller may do everything, so the node accepts only this machine, and only with
/// `--insecure`.
fn check_access(listen: SocketAddr, insecure: bool, has_keys: bool) -> Result<(), Usage> {
    match (insecure, has_keys) {
        (false, true) => return Ok(()),
        (false, false) => {
            return Err(Usage::new(
                "`duly serve` has no keys to authenticate callers: name one under `auth:` in the \
                 file of --config, as docs/security.md shows, or pass --insecure to start without, \
                 on loopback only",
            ));
        }
        (true, true) => {
            return Err(Usage::new(
                "--insecure accepts every client, but `auth:` names keys; leave one of them out",
            ));
        }
        (true, false) => {}
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
