//! The address of a database, and encryption on the way to it. Certificates are always checked. A
//! database on this machine is spoken to in plain, unless its address asks for more.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How to encrypt, if it is encrypted.
pub(super) fn connector(config: &Config) -> Result<Option<MakeRustlsConnect>, rustls::Error> {
    if config.get_ssl_mode() == SslMode::Disable {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

/// Reads an address. `require` checks the certificate too, as `verify-full` does elsewhere.
pub(super) fn parse(address: &str) -> Option<Config> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme)) {
        return None;
    }
    let plain = address.replace("sslmode=verify-full", "sslmode=require");
    let mut config: Config = plain.replace("sslmode=verify-ca", "sslmode=require").parse().ok()?;
    if !address.contains("sslmode=") {
        let is_near = config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) if name == "localhost" => true,
            Host::Tcp(name) => name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        });
        config.ssl_mode(if is_near { SslMode::Disable } else { SslMode::Require });
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_on_this_machine_is_spoken_to_in_plain() {
        for (address, mode) in [
            ("postgres://a@localhost/b", SslMode::Disable),
            ("postgresql://a@127.0.0.1:5433/b", SslMode::Disable),
            ("postgres://a@db.example.com/b", SslMode::Require),
            ("postgres://a@127.0.0.1,db.example.com/b", SslMode::Require),
            ("postgres://a@db.example.com/b?sslmode=disable", SslMode::Disable),
            ("postgres://a@db.example.com/b?sslmode=verify-full", SslMode::Require),
        ] {
            assert_eq!(parse(address).unwrap().get_ssl_mode(), mode, "{address}");
        }
        for address in ["", "mysql://a@b/c", "host=localhost", "postgres://a@b:port/c"] {
            assert!(parse(address).is_none(), "{address}");
        }
    }
}
