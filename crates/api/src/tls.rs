//! Encrypted connections. The certificate is read again when its file changes, without a restart and
//! without a loop: a handshake looks whether it is time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// How often a handshake looks whether the files have changed.
const LOOK: Duration = Duration::from_secs(1);

/// The files of a certificate.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate and those that it was signed with, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Accepts encrypted connections.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificate {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {path} as PEM: {why}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        why: String,
    },
    /// There is no certificate in the file.
    #[error("{0} holds no certificate in PEM")]
    Empty(String),
    /// The key does not fit.
    #[error("the private key in {path} cannot be used with the certificate: {why}")]
    Key {
        /// The file.
        path: String,
        /// The cause.
        why: rustls::Error,
    },
}

impl Tls {
    /// Reads the files.
    pub fn new(files: TlsFiles) -> Result<Self, BadCertificate> {
        let read = Arc::new(read(&files)?);
        let state = State { key: read, changed: changed(&files), looked: Instant::now() };
        let certificates = Arc::new(Certificates { files, state: Mutex::new(state) });
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().expect("it has TLS 1.2 and 1.3");
        let resolver = Arc::clone(&certificates);
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificates })
    }

    /// The certificate of the next handshake, in DER.
    pub fn current_certificate(&self) -> Vec<u8> {
        self.certificates.current().cert.first().map_or_else(Vec::new, |first| first.to_vec())
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// The certificate of the next handshake.
#[derive(Debug)]
struct Certificates {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    key: Arc<CertifiedKey>,
    /// When the files were changed that it was read from.
    changed: [Option<SystemTime>; 2],
    /// When the files were looked at last.
    looked: Instant,
}

impl Certificates {
    fn current(&self) -> Arc<CertifiedKey> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            let changed = changed(&self.files);
            if changed != state.changed {
                match read(&self.files) {
                    Ok(key) => {
                        tracing::info!("the certificate has changed, and was read again");
                        (state.key, state.changed) = (Arc::new(key), changed);
                    }
                    // One of the files may be new already and the other not yet.
                    Err(error) => tracing::warn!(%error, "keeping the old certificate"),
                }
            }
        }
        Arc::clone(&state.key)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn changed(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    let of = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    [of(&files.certificate), of(&files.key)]
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, BadCertificate> {
    let name = |path: &Path| path.display().to_string();
    let bad = |path: &Path, why: rustls::pki_types::pem::Error| BadCertificate::File {
        path: name(path),
        why: why.to_string(),
    };
    let at = &files.certificate;
    let chain = CertificateDer::pem_file_iter(at).map_err(|why| bad(at, why))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|why| bad(at, why))?;
    if chain.is_empty() {
        return Err(BadCertificate::Empty(name(at)));
    }
    let at = &files.key;
    let key = PrivateKeyDer::from_pem_file(at).map_err(|why| bad(at, why))?;
    let unfit = |why| BadCertificate::Key { path: name(at), why };
    let key = ring::sign::any_supported_type(&key).map_err(unfit)?;
    let certified = CertifiedKey::new(chain, key);
    certified.keys_match().map_err(unfit)?;
    Ok(certified)
}
