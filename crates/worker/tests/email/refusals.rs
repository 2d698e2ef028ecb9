//! Servers that refuse, defer, hang, or are not what they should be.

use std::time::Duration;

use duly_testkit::MailServer;
use duly_worker::mail::{Encryption, Login, SmtpConfig};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{certificate, failure, handler, run, to, usual, usual_server};

#[tokio::test]
async fn a_refused_recipient_fails_the_mail_for_all() {
    let Some(mut server) = usual_server().await else { return };
    let handler = handler(usual(server.port()));
    let both = json!({"to": ["ada@example.com", "refused@example.com"], "subject": "Hello"});
    let (decision, error) = failure(run(&handler, &both).await);
    assert_eq!((decision, error.code.as_str()), ("fail", "MAIL_REFUSED"));
    assert!(error.message.contains("550"), "{}", error.message);
    assert!(error.message.contains("no such user here"), "{}", error.message);
    run(&handler, &to("bob@example.com")).await.unwrap();
    let mail = server.mail().await.unwrap();
    assert_eq!(mail["recipients"], json!(["bob@example.com"]), "nobody got the first mail");
}

#[tokio::test]
async fn a_deferred_mail_is_tried_again() {
    let Some(mut server) = usual_server().await else { return };
    let handler = handler(usual(server.port()));
    let payload = to("greylisted@example.com");
    let (decision, error) = failure(run(&handler, &payload).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_DEFERRED"));
    assert!(error.message.contains("try again later"), "{}", error.message);
    run(&handler, &payload).await.unwrap();
    assert_eq!(server.mail().await.unwrap()["recipients"], json!(["greylisted@example.com"]));
}

#[tokio::test]
async fn a_connection_that_hangs_is_given_up_and_never_used_again() {
    let Some(mut server) = usual_server().await else { return };
    let config = SmtpConfig { timeout: Duration::from_secs(2), ..usual(server.port()) };
    let handler = handler(config);
    run(&handler, &to("ada@example.com")).await.unwrap();
    let first = server.mail().await.unwrap();
    let (decision, error) = failure(run(&handler, &to("hanging@example.com")).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_CONNECT"));
    assert_eq!(error.message, "the server took longer than 2 s");
    run(&handler, &to("bob@example.com")).await.unwrap();
    let last = server.mail().await.unwrap();
    assert_eq!(last["recipients"], json!(["bob@example.com"]));
    assert_ne!(first["peer"], last["peer"], "the hanging connection was used again");
}

#[tokio::test]
async fn a_server_that_says_nothing_or_is_not_there_is_tried_again() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for encryption in [Encryption::StartTls, Encryption::Tls] {
        let timeout = Duration::from_millis(200);
        let config = SmtpConfig { encryption, timeout, ..usual(port) };
        let (decision, error) = failure(run(&handler(config), &to("ada@example.com")).await);
        assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_CONNECT"), "{encryption:?}");
    }
    drop(silent);
    let (decision, error) = failure(run(&handler(usual(port)), &to("ada@example.com")).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_CONNECT"), "{}", error.message);
}

#[tokio::test]
async fn s10_a_refused_login_is_tried_again_and_shows_no_password() {
    let Some(server) = usual_server().await else { return };
    let login = Login { user: "duly".to_owned(), password: "wrong-canary".to_owned() };
    let config = SmtpConfig { login: Some(login), ..usual(server.port()) };
    let (decision, error) = failure(run(&handler(config), &to("ada@example.com")).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_LOGIN"), "{}", error.message);
    assert!(!error.message.contains("canary"), "{}", error.message);
    // In base64, as the protocol has it.
    assert!(!error.message.contains("d3JvbmctY2FuYXJ5"), "{}", error.message);

    let config = SmtpConfig { login: None, ..usual(server.port()) };
    let (decision, error) = failure(run(&handler(config), &to("ada@example.com")).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_LOGIN"), "{}", error.message);
}

#[tokio::test]
async fn s15_a_certificate_that_is_not_trusted_gets_no_mail() {
    for (mode, encryption) in [("starttls", Encryption::StartTls), ("tls", Encryption::Tls)] {
        let flags = ["--tls", mode, "--certificate", certificate()];
        let Some(server) = MailServer::start(&flags).await.unwrap() else { return };
        let other = include_str!("../http/self_signed.pem").as_bytes().to_vec();
        let config = SmtpConfig { authority: Some(other), encryption, ..usual(server.port()) };
        let (decision, error) = failure(run(&handler(config), &to("ada@example.com")).await);
        assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_CONNECT"), "{encryption:?}");
        assert!(error.message.contains("certificate"), "{}", error.message);
    }
}

#[tokio::test]
async fn s15_a_server_without_starttls_gets_neither_mail_nor_password() {
    let Some(server) = MailServer::start(&[]).await.unwrap() else { return };
    let (decision, error) =
        failure(run(&handler(usual(server.port())), &to("ada@example.com")).await);
    assert_eq!((decision, error.code.as_str()), ("retry", "MAIL_CONNECT"));
    assert!(error.message.contains("STARTTLS is not supported"), "{}", error.message);
}
