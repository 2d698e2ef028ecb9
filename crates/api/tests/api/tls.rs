//! Encrypted connections.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use duly_api::{Config, HostPolicy, Tls, TlsFiles};
use duly_client::{Client, ClientOptions};
use tokio::io::AsyncWriteExt;

use crate::auth::issuer::key_file;
use crate::server::{Server, impatient, read_to_end};
use crate::support::engine;

fn files(folder: &Path, name: &str) -> TlsFiles {
    let copy = |from: String, to: &str| {
        let to = folder.join(to);
        fs::copy(key_file(&from), &to).unwrap();
        to
    };
    let certificate = copy(format!("{name}.cert.pem"), "cert.pem");
    TlsFiles { certificate, key: copy(format!("{name}.pem"), "key.pem") }
}

/// A server with a certificate for 127.0.0.1.
async fn serve(folder: &Path, config: Config) -> Server {
    let tls = Tls::new(files(folder, "server")).unwrap();
    let config = Config { tls: Some(tls), allowed_hosts: HostPolicy::Any, ..config };
    Server::serve(duly_api::router(engine(), config.clone()), config).await
}

fn client(server: &Server, is_trusted: bool) -> Client {
    let authorities = is_trusted.then(|| fs::read(key_file("ca.cert.pem")).unwrap());
    let url = server.url().replace("http://", "https://");
    Client::with_options(&url, &ClientOptions { authorities, ..ClientOptions::default() }).unwrap()
}

#[tokio::test]
async fn an_encrypted_server_is_known_by_its_authority() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), Config::default()).await;
    assert_eq!(client(&server, true).version().await.unwrap().name, "duly");
    assert!(client(&server, false).version().await.is_err(), "nobody vouches for it");
    assert!(Client::new(&server.url(), None).unwrap().version().await.is_err(), "in plain");
    server.stop().await;
}

#[tokio::test]
async fn s19_a_peer_that_does_not_shake_hands_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), impatient()).await;
    for said in [&b""[..], &[22, 3, 1, 2, 0], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = server.connect().await;
        stream.write_all(said).await.unwrap();
        read_to_end(&mut stream).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_changes_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::new(files(folder.path(), "server")).unwrap();
    let subject = || tls.current_certificate();
    let first = subject();
    // Half of a change is not taken.
    fs::copy(key_file("renewed.cert.pem"), folder.path().join("cert.pem")).unwrap();
    let touch = |ahead: u64| {
        let later = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000 + ahead);
        for name in ["cert.pem", "key.pem"] {
            let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
            file.set_modified(later).unwrap();
        }
    };
    touch(0);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(subject(), first);
    files(folder.path(), "renewed");
    touch(1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_ne!(subject(), first);
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused() {
    let name = |file: &str| key_file(file);
    for (certificate, key, words) in [
        ("absent.pem", "server.pem", "cannot read"),
        ("server.cert.pem", "absent.pem", "cannot read"),
        ("server.pem", "server.pem", "no certificate"),
        ("server.cert.pem", "renewed.pem", "cannot be used"),
        ("server.cert.pem", "server.cert.pem", "cannot read"),
    ] {
        let files = TlsFiles { certificate: name(certificate), key: name(key) };
        let why = Tls::new(files).err().unwrap().to_string();
        assert!(why.contains(words), "{certificate}, {key}: {why}");
    }
}
