//! The handler, and what it needs.

use std::path::PathBuf;
use std::time::Duration;

use duly_core::task::Failure;
use duly_testkit::{MailServer, attempt};
use duly_worker::handlers::Email;
use duly_worker::mail::{Encryption, Login, Mailer, Outbox, Smtp, SmtpConfig, Templates};
use duly_worker::{Context, Handler, HandlerError};
use serde_json::{Value, json};

/// The certificate of the server and its key, of use in these tests alone.
pub(crate) const PEM: &str = include_str!("localhost.pem");

/// Its path, for the server.
pub(crate) fn certificate() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/email/localhost.pem")
}

/// A server that asks for STARTTLS and a login, as those of providers do.
pub(crate) async fn usual_server() -> Option<MailServer> {
    let flags = ["--tls", "starttls", "--certificate", certificate(), "--login"];
    MailServer::start(&flags).await.unwrap()
}

/// How to reach the usual server.
pub(crate) fn usual(port: u16) -> SmtpConfig {
    SmtpConfig {
        host: "127.0.0.1".to_owned(),
        port,
        encryption: Encryption::StartTls,
        login: Some(Login { user: "duly".to_owned(), password: "secret".to_owned() }),
        authority: Some(PEM.as_bytes().to_vec()),
        hello: "localhost".to_owned(),
        timeout: Duration::from_secs(30),
    }
}

pub(crate) fn handler(config: SmtpConfig) -> Email {
    let smtp = Smtp::new(config).unwrap();
    Email::new(Mailer::smtp(from(), Templates::built_in(), smtp))
}

fn from() -> duly_core::mail::Mailbox {
    "Duly <duly@example.com>".parse().unwrap()
}

/// A handler that stores mails in a folder.
pub(crate) fn with_outbox(folder: PathBuf) -> Email {
    Email::new(Mailer::outbox(from(), Templates::built_in(), Outbox::new(folder)))
}

pub(crate) fn context(payload: &Value) -> Context {
    attempt::context("email", "default", &payload.to_string())
}

/// The result of an attempt.
pub(crate) async fn run(handler: &Email, payload: &Value) -> Result<Value, HandlerError> {
    let output = handler.run(context(payload)).await?;
    Ok(serde_json::from_str(&output.into_text().unwrap()).unwrap())
}

/// Whether a failed attempt is retried, and its code and message.
pub(crate) fn failure(result: Result<Value, HandlerError>) -> (&'static str, Failure) {
    match result.unwrap_err() {
        HandlerError::Retry(failure) => ("retry", failure),
        HandlerError::Fail(failure) => ("fail", failure),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn to(address: &str) -> Value {
    json!({"to": address, "subject": "Hello"})
}
