//! What the check of tokens costs: the same load on a server without keys and on one with a key,
//! alternating.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use duly_api::{AuthConfig, NewToken, SigningKey};
use duly_core::access::{AccessRole, TenantGrant};
use duly_core::name::TenantName;
use duly_core::ports::clock::Clock as _;
use duly_core::ports::random::Random as _;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;

use super::figures::{Figure, Target};
use super::run::Run;
use super::{ROUNDS, remote, rest};

pub(super) const STEPS: usize = ROUNDS;
/// Submits of one task each.
const SINGLE: usize = 50_000;

/// Whom a measured server lets in.
#[derive(Clone, Copy)]
pub(super) enum Access<'a> {
    /// As a server is usually measured.
    Usual,
    /// `duly serve --insecure`.
    Open,
    /// `duly serve` with a key.
    Keys(&'a Keys),
}

impl Access<'_> {
    /// What clients send.
    pub(super) fn token(self) -> Option<String> {
        match self {
            Self::Usual | Self::Open => None,
            Self::Keys(keys) => Some(keys.token.clone()),
        }
    }
}

/// A configuration file with a key, and a token that the key has signed; dropping it removes the file.
pub(super) struct Keys {
    config: PathBuf,
    token: String,
}

impl Keys {
    fn write(folder: &Path) -> anyhow::Result<Self> {
        let random = OsRandom::new();
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        // 86 letters of base64 and two signs that fill up are 64 bytes.
        let letter =
            |_| char::from(letters[usize::try_from(random.next() % 64).expect("a letter")]);
        let secret: String = (0..85).map(letter).chain("A==".chars()).collect();
        let keys = format!(
            r#"{{"keys": [{{"id": "bench", "algorithm": "HS256", "secret": "{secret}"}}]}}"#
        );
        let auth: AuthConfig = serde_json::from_str(&keys)?;
        let signing = SigningKey::of(&auth, None)?.context("a secret signs")?;
        let new = NewToken {
            subject: "bench".to_owned(),
            grant: TenantGrant::One(TenantName::default_tenant()),
            roles: [AccessRole::Operator, AccessRole::Worker].into_iter().collect(),
            expires_in: Duration::from_secs(24 * 60 * 60),
            key: None,
        };
        let (token, _) = signing.sign(new, SystemClock::default().now());
        let config = folder.join(format!("duly-bench-{}.yaml", std::process::id()));
        // JSON is YAML. No limits: they are measured by their tests.
        let text = format!(r#"{{"auth": {keys}, "limits": {{"requestsPerSecond": 0}}}}"#);
        std::fs::write(&config, text)
            .with_context(|| format!("cannot write {}", config.display()))?;
        Ok(Self { config, token })
    }

    /// The file, for `duly serve`.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.config));
    }
}

pub(super) async fn measure(run: &mut Run) -> anyhow::Result<()> {
    let folder = run.folder().map_or_else(std::env::temp_dir, Path::to_owned);
    let keys = Keys::write(&folder)?;
    let (single, tasks) = (run.tasks.min(SINGLE), run.tasks);
    let ways = [Access::Open, Access::Keys(&keys)];
    let (mut submits, mut drains) = ([Duration::MAX; 2], [Duration::MAX; 2]);
    for round in 1..=ROUNDS {
        run.step(&format!("keys: {single} single submits, {tasks} drained, {round} of {ROUNDS}"));
        for (place, access) in ways.into_iter().enumerate() {
            let submit = rest::single_submits(run, single, access).await?;
            submits[place] = submits[place].min(submit);
            let drain = remote::backlog(run.new_site("keys").await?, tasks, access).await?;
            drains[place] = drains[place].min(drain);
        }
    }
    for (name, count, [open, checked]) in [
        ("with keys: single submit", single, submits),
        ("with keys: drain over HTTP", tasks, drains),
    ] {
        let figure = Figure::rate(name, count, checked).compare_rate(count, open);
        run.add(figure.must(Target::Ratio(0.9)));
    }
    Ok(())
}
