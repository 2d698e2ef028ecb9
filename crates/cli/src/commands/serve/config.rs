//! The configuration of `duly serve`: a flag, else the environment, else the file, else the default.

mod file;
mod schedules;
mod smtp;
mod sources;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use duly_api::{AuthConfig, Tenants};
use duly_core::event::Kinds;
use duly_core::limits::{LOSSES, SESSION_TTL, WORKER_CHARS};
use duly_core::node::Role;

use self::file::File;
use crate::args::{LogLevel, ServeArgs};
use crate::exit::Usage;
use crate::wiring::{EventFile, Plan, authenticator, default_name, guard, loopback, tls};

/// The keys for tokens in a file.
pub(super) fn read_auth(file: &Path) -> anyhow::Result<Option<AuthConfig>> {
    Ok(File::read(file)?.auth)
}

/// Default running slots.
const DEFAULT_CONCURRENCY: usize = 64;

/// The complete configuration.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) plan: Plan,
    pub(super) listen: SocketAddr,
    pub(super) insecure: bool,
    pub(super) allow_owner: bool,
    pub(super) log_level: LogLevel,
}

impl Config {
    /// Reads the file, if any, and combines it with flags and environment.
    pub(super) fn read(args: ServeArgs) -> anyhow::Result<Self> {
        let file = match &args.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        Ok(Self::new(args, file)?)
    }

    fn new(args: ServeArgs, file: File) -> Result<Self, Usage> {
        let store = args.store.or(file.store).ok_or_else(|| {
            let ways = "--store URL, DULY_STORE, or `store:` in the file";
            Usage::new(format!("no store given: pass {ways}; URL is postgres://… or sqlite:PATH"))
        })?;
        let default = SocketAddr::from(([127, 0, 0, 1], 8080));
        let listen = args.listen.or(file.listen.address).unwrap_or(default);
        let insecure = args.insecure.or(file.insecure).unwrap_or(false);
        let mut outbound = args.allow_nets.or(file.outbound.allow).unwrap_or_default();
        if insecure {
            // Only this machine can submit tasks.
            outbound.extend(loopback());
        }
        let outbound_ports = args.allow_ports.or(file.outbound.ports);
        let guard = guard(outbound.clone(), outbound_ports.clone());
        let auth = file.auth.as_ref().map(|auth| authenticator(auth, &guard)).transpose()?;
        let plan = Plan {
            name: name(args.name.or(file.name))?,
            roles: distinct(args.roles.or(file.roles).unwrap_or_else(|| Role::ALL.to_vec()))?,
            store: store.location()?,
            concurrency: args
                .concurrency
                .or(file.worker.concurrency)
                .unwrap_or(DEFAULT_CONCURRENCY),
            session_ttl: args.session_ttl.or(file.session.ttl).unwrap_or(SESSION_TTL),
            loss_limit: args.loss_limit.or(file.worker.loss_limit).unwrap_or(LOSSES),
            outbound,
            outbound_ports,
            allow_shell: args.allow_shell,
            sources: sources::sources(file.sources)?,
            mailer: file
                .smtp
                .map(|smtp| smtp::mailer(smtp, smtp::password_variable()))
                .transpose()?,
            samples: false,
            tenants: Tenants::ByHeader,
            auth,
            limits: file.limits.at(listen),
            tls: file.listen.tls.map(tls).transpose()?,
            schedules: file.schedules.map(schedules::read).transpose()?,
            event_file: event_file(args.events_file, args.events_kinds, file.events)?,
            #[cfg(feature = "planted-bugs")]
            planted_bug: args.planted_bug,
            #[cfg(feature = "planted-bugs")]
            clock_ahead: None,
        };
        Ok(Self {
            plan,
            listen,
            insecure,
            allow_owner: args.allow_owner.unwrap_or(false),
            log_level: args.log_level.or(file.log.level).unwrap_or(LogLevel::Warn),
        })
    }
}

fn event_file(
    path: Option<PathBuf>,
    kinds: Option<Kinds>,
    file: file::Events,
) -> Result<Option<EventFile>, Usage> {
    let kinds = kinds.or(file.kinds);
    match path.or(file.file) {
        Some(path) => Ok(Some(EventFile { path, kinds: kinds.unwrap_or(Kinds::OUTCOMES) })),
        None if kinds.is_some() => Err(Usage::new(
            "events: kinds say what goes to a file; name it with --events-file or `events.file`",
        )),
        None => Ok(None),
    }
}

fn distinct(mut roles: Vec<Role>) -> Result<Vec<Role>, Usage> {
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        return Err(Usage::new("roles: name at least one of api, scheduler, worker"));
    }
    Ok(roles)
}

fn name(given: Option<String>) -> Result<String, Usage> {
    let name = given.unwrap_or_else(default_name);
    if name.is_empty() || name.chars().count() > WORKER_CHARS {
        return Err(Usage::new(format!("name: must have 1 to {WORKER_CHARS} characters")));
    }
    Ok(name)
}
