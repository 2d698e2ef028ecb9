//! Encryption on the way to the server.
//!
//! Certificates are always checked, against those that the machine trusts. A server on this very
//! machine is spoken to in plain, unless the address asks for more.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How to encrypt.
pub(super) fn connector() -> Result<MakeRustlsConnect, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The address as the driver understands it. It knows no `verify-full`, which is what `require`
/// means here.
pub(super) fn parse(url: &str) -> Result<Config, tokio_postgres::Error> {
    let plain = url.replace("sslmode=verify-full", "sslmode=require");
    let mut config: Config = plain.replace("sslmode=verify-ca", "sslmode=require").parse()?;
    if !url.contains("sslmode=") {
        let near = config.get_hosts().iter().all(is_near);
        config.ssl_mode(if near { SslMode::Disable } else { SslMode::Require });
    }
    Ok(config)
}

/// Whether the way there is private.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) if name == "localhost" => true,
        Host::Tcp(name) => name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_on_this_machine_is_spoken_to_in_plain() {
        for (url, mode) in [
            ("postgres://duly@localhost/duly", SslMode::Disable),
            ("postgres://duly@127.0.0.1:5433/duly", SslMode::Disable),
            ("postgres://duly@[::1]/duly", SslMode::Disable),
            ("postgres://duly@%2Frun%2Fpostgresql/duly", SslMode::Disable),
            ("postgres://duly@db.example.com/duly", SslMode::Require),
            ("postgres://duly@127.0.0.1,db.example.com/duly", SslMode::Require),
            ("postgres://duly@db.example.com/duly?sslmode=disable", SslMode::Disable),
            ("postgres://duly@db.example.com/duly?sslmode=verify-full", SslMode::Require),
        ] {
            assert_eq!(parse(url).unwrap().get_ssl_mode(), mode, "{url}");
        }
    }
}
