//! The keys of nodes that authenticate their callers, and tokens that the keys sign.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

/// 256 bits in base64, for tests alone.
const SECRET: &str = "bm90IHJhbmRvbSwgYnV0IGxvbmcgYW5kIG1peGVkIGVub3VnaCE=";

/// A configuration file with one secret.
#[derive(Clone, Debug)]
pub struct Keys {
    duly: PathBuf,
    config: PathBuf,
}

impl Keys {
    /// Writes the file into this folder. `duly` is the binary that signs tokens.
    pub fn write(duly: &Path, folder: &Path) -> anyhow::Result<Self> {
        let config = folder.join("keys.yaml");
        let text = format!("auth:\n  keys: [{{id: test, algorithm: HS256, secret: {SECRET}}}]\n");
        std::fs::write(&config, text)?;
        Ok(Self { duly: duly.to_owned(), config })
    }

    /// The file, for `duly serve --config`.
    pub fn config(&self) -> anyhow::Result<&str> {
        self.config.to_str().context("the folder has an odd name")
    }

    /// Signs a token for the default tenant.
    pub async fn token(&self, roles: &str) -> anyhow::Result<String> {
        self.token_for("default", roles).await
    }

    /// Signs a token for a tenant, or for all of them: `*`.
    pub async fn token_for(&self, tenant: &str, roles: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.duly);
        command.args(["token", "create", "--tenant", tenant, "--subject", "test"]);
        command.args(["--roles", roles, "--expires-in", "12h", "--config", self.config()?]);
        let ended = command.output().await?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "no token was signed: {said}");
        Ok(String::from_utf8(ended.stdout)?.trim().to_owned())
    }
}
