//! Reads a document that the operator names, such as a set of public keys, as carefully as a task calls
//! its target: it dials only permitted addresses, follows no redirects and uses no proxies.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::outbound::{Guard, Refused, Resolver, SystemNames};

/// How long it may take in all.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of the largest document.
const BYTES: usize = 256 * 1024;

/// A document on another server.
#[derive(Clone, Debug)]
pub struct Document {
    client: Client,
    url: Url,
    guard: Guard,
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is none that can be read.
    #[error("it must be an https:// address, or http:// on loopback")]
    Url,
    /// The address may not be dialled.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There was no answer.
    #[error("no answer: {0}")]
    Transport(#[from] reqwest::Error),
    /// The answer is none that can be used.
    #[error("the answer was {0}")]
    Status(u16),
    /// The answer is too large.
    #[error("the answer has more than {BYTES} bytes")]
    TooLarge,
}

impl Document {
    /// The document at an address.
    pub fn new(url: &str, guard: &Guard) -> Result<Self, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::Url)?;
        let has_password = !url.username().is_empty() || url.password().is_some();
        // Who can change plain text on the way could put in keys of its own.
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
        let port = url.port_or_known_default().filter(|_| is_safe && !has_password);
        let guard = guard.at_port(port.ok_or(FetchError::Url)?);
        // An error means that the process has a provider already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("duly/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Resolver::new(guard.clone(), Arc::new(SystemNames)))
            .redirect(Policy::none())
            .no_proxy()
            .timeout(TIMEOUT);
        let client = if url.scheme() == "http" { client.tls_certs_only([]) } else { client };
        Ok(Self { client: client.build()?, url, guard })
    }

    /// Reads it.
    pub async fn read(&self) -> Result<Vec<u8>, FetchError> {
        if let Some(address) = literal_address(&self.url) {
            self.guard.check(address)?;
        }
        let mut response = self.client.get(self.url.clone()).send().await?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if document.len() + chunk.len() > BYTES {
                return Err(FetchError::TooLarge);
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }
}

fn literal_address(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_loopback(url: &Url) -> bool {
    literal_address(url).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn guard() -> Guard {
        Guard::new(vec!["127.0.0.0/8".parse().unwrap()])
    }

    #[test]
    fn only_safe_addresses_are_read() {
        for url in
            ["", "keys.json", "http://example.com/k", "ftp://x/k", "file:///k", "https://a:b@x/k"]
        {
            assert!(matches!(Document::new(url, &guard()), Err(FetchError::Url)), "{url}");
        }
        assert!(Document::new("https://example.com/keys.json", &guard()).is_ok());
    }

    #[tokio::test]
    async fn an_address_that_is_not_permitted_is_not_dialled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let document = Document::new(&url, &Guard::new(Vec::new())).unwrap();
        assert!(matches!(document.read().await, Err(FetchError::Refused(_))));
        let document = Document::new("https://169.254.169.254/", &guard()).unwrap();
        assert!(matches!(document.read().await, Err(FetchError::Refused(_))));
    }

    #[tokio::test]
    async fn redirects_errors_and_large_answers_are_refused() {
        let large = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(BYTES + 1));
        for (answer, words) in [
            ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", "302"),
            ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "500"),
            (large.as_str(), "bytes"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap());
            let document = Document::new(&url, &guard()).unwrap();
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                drop(stream.read(&mut [0; 4096]).await);
                drop(stream.write_all(answer.as_bytes()).await);
            };
            let (read, ()) = tokio::join!(document.read(), serve);
            let why = read.unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }
}
