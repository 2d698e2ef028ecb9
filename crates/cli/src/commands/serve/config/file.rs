//! The configuration file. Every key is optional; an unknown key is an error.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use duly_api::{AuthConfig, TlsFiles};
use duly_core::event::Kinds;
use duly_core::limits::{CONCURRENCY, LOSS_LIMIT};
use duly_core::node::Role;
use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::smtp::SmtpFields;
use super::sources::SourceFields;
use crate::args::{self, LogLevel, session_ttl};
use crate::exit::Usage;
use crate::wiring::StoreUrl;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default, deserialize_with = "store")]
    pub(super) store: Option<StoreUrl>,
    #[serde(default)]
    pub(super) listen: Listen,
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "roles")]
    pub(super) roles: Option<Vec<Role>>,
    pub(super) insecure: Option<bool>,
    /// The keys that callers sign in with.
    pub(super) auth: Option<AuthConfig>,
    #[serde(default)]
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) worker: Worker,
    #[serde(default)]
    pub(super) session: Session,
    #[serde(default)]
    pub(super) outbound: Outbound,
    /// The server that sends mails.
    pub(super) smtp: Option<SmtpFields>,
    /// Databases that tasks may query, by their names.
    #[serde(default)]
    pub(super) sources: BTreeMap<String, SourceFields>,
    #[serde(default)]
    pub(super) events: Events,
    #[serde(default)]
    pub(super) log: Log,
    /// Those that the leader keeps. Without the key it changes none; with an empty list it deletes those
    /// of an earlier file.
    pub(super) schedules: Option<Vec<Map<String, Value>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Worker {
    #[serde(default, deserialize_with = "concurrency")]
    pub(super) concurrency: Option<usize>,
    #[serde(default, deserialize_with = "loss_limit")]
    pub(super) loss_limit: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Session {
    #[serde(default, deserialize_with = "ttl")]
    pub(super) ttl: Option<Duration>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outbound {
    pub(super) allow: Option<Vec<IpNet>>,
    pub(super) ports: Option<Vec<u16>>,
}

/// How much one caller may ask.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Limits {
    /// Sign-ins that may fail within a minute.
    pub(super) failed_sign_ins: Option<u32>,
    /// Requests of one caller from one address; 0 for any number.
    pub(super) requests_per_second: Option<u32>,
    /// Connections from one address; 0 for any number.
    pub(super) connections_per_address: Option<usize>,
    /// Streams of events of one caller; 0 for any number.
    pub(super) streams_per_caller: Option<usize>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub(super) proxies: Option<Vec<IpNet>>,
}

/// The default where others than this machine may call.
const REQUESTS_PER_SECOND: u32 = 1000;
const CONNECTIONS_PER_ADDRESS: usize = 1000;

impl Limits {
    /// The limits of a server at this address. On loopback, what is not given is not limited.
    pub(super) fn at(self, listen: SocketAddr) -> duly_api::Limits {
        let default = duly_api::Limits::default();
        let is_local = listen.ip().is_loopback();
        let (requests, connections) =
            if is_local { (0, 0) } else { (REQUESTS_PER_SECOND, CONNECTIONS_PER_ADDRESS) };
        duly_api::Limits {
            failed_sign_ins: self.failed_sign_ins.unwrap_or(default.failed_sign_ins),
            requests_per_second: NonZeroU32::new(self.requests_per_second.unwrap_or(requests)),
            connections_per_address: self.connections_per_address.unwrap_or(connections),
            streams_per_caller: self.streams_per_caller.unwrap_or(default.streams_per_caller),
            proxies: self.proxies.unwrap_or(default.proxies),
        }
    }
}

/// `HOST:PORT`, or that under `address` beside `tls`.
#[derive(Default)]
pub(super) struct Listen {
    pub(super) address: Option<SocketAddr>,
    pub(super) tls: Option<TlsFiles>,
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let address = |text: String| {
            args::listen(&text).map_err(|why| D::Error::custom(format!("listen: {why}")))
        };
        match Value::deserialize(from)? {
            Value::Null => Ok(Self::default()),
            Value::String(text) => Ok(Self { address: Some(address(text)?), tls: None }),
            Value::Object(fields) => {
                let given: ListenFields = serde_json::from_value(Value::Object(fields))
                    .map_err(|why| D::Error::custom(format!("listen: {why}")))?;
                let tls =
                    given.tls.map(|tls| TlsFiles { certificate: tls.cert_file, key: tls.key_file });
                Ok(Self { address: given.address.map(address).transpose()?, tls })
            }
            _ => Err(D::Error::custom("listen: must be HOST:PORT, or have address and tls")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenFields {
    address: Option<String>,
    tls: Option<TlsFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TlsFields {
    cert_file: PathBuf,
    key_file: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    /// What events are appended to.
    pub(super) file: Option<PathBuf>,
    #[serde(default, deserialize_with = "kinds")]
    pub(super) kinds: Option<Kinds>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    pub(super) level: Option<LogLevel>,
}

impl File {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&text).map_err(|why| Usage::new(format!("{}: {why}", path.display())))?)
    }

    /// Parses the file; an empty file is valid.
    pub(super) fn parse(text: &str) -> Result<Self, serde_yaml_ng::Error> {
        Ok(serde_yaml_ng::from_str::<Option<Self>>(text)?.unwrap_or_default())
    }
}

fn store<'de, D: Deserializer<'de>>(from: D) -> Result<Option<StoreUrl>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

fn roles<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Role>>, D::Error> {
    let names: Option<Vec<String>> = Deserialize::deserialize(from)?;
    let role = |name: &String| {
        name.parse::<Role>().map_err(|why| D::Error::custom(format!("`{name}` {why}")))
    };
    names.map(|names| names.iter().map(role).collect()).transpose()
}

fn kinds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Kinds>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    let read = |text: String| text.parse().map_err(|why| D::Error::custom(format!("kinds: {why}")));
    text.map(read).transpose()
}

fn concurrency<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    within(from, "concurrency", 1..=CONCURRENCY)
}

fn loss_limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within(from, "lossLimit", 1..=LOSS_LIMIT)
}

/// A number in this range.
fn within<'de, D, T>(
    from: D,
    name: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialOrd + std::fmt::Display,
{
    let number: Option<T> = Deserialize::deserialize(from)?;
    match number {
        Some(number) if !range.contains(&number) => Err(D::Error::custom(format!(
            "{name} must be a number from {} to {}",
            range.start(),
            range.end()
        ))),
        number => Ok(number),
    }
}

/// A duration such as `30s`.
pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    text.map(|text| args::duration(&text).map_err(D::Error::custom)).transpose()
}

fn ttl<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    text.map(|text| session_ttl(&text).map_err(D::Error::custom)).transpose()
}
