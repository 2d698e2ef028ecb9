//! Flags that select the server and say who calls.

use std::path::PathBuf;

use anyhow::Context as _;
use duly_client::{Client, ClientOptions};
use duly_core::name::TenantName;

/// Flags of everything that calls a server.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Address of the server
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        env = "DULY_SERVER",
        hide_env_values = true
    )]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

/// Flags that say who calls.
#[derive(Debug, clap::Args)]
pub(crate) struct CallerArgs {
    /// The token or API key to send; better by DULY_TOKEN or --token-file, since other users of this
    /// machine see the arguments of a program
    #[arg(long, env = "DULY_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file with the token or API key; overrides --token
    #[arg(long, value_name = "FILE", env = "DULY_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// The tenant to act for, with a token for all of them
    #[arg(long, value_name = "TENANT", env = "DULY_TENANT", value_parser = TenantName::given)]
    as_tenant: Option<TenantName>,
    /// A PEM file with authorities to trust beside those of the system
    #[arg(long, value_name = "FILE", env = "DULY_CA_FILE")]
    ca_file: Option<PathBuf>,
}

impl ServerArgs {
    /// A client of the server.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        self.caller.connect(&self.server)
    }
}

impl CallerArgs {
    /// A client of the server at an address.
    pub(crate) fn connect(&self, server: &str) -> anyhow::Result<Client> {
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                Some(text.trim().to_owned())
            }
            None => self.token.clone(),
        };
        let authorities = self.ca_file.as_ref().map(|path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        });
        let tenant = self.as_tenant.clone();
        let options = ClientOptions { token, tenant, authorities: authorities.transpose()? };
        Ok(Client::with_options(server, &options)?)
    }
}
