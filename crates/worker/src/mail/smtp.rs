//! Sends mails to an SMTP server. Connections are used again, but only those whose last mail went
//! through: one that was given up in the middle would take the next mail for the rest of this one.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use duly_core::mail::Mailbox;
use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::message::message;
use super::{Mail, MailError};
use crate::error_chain::chain;

/// Connections to the server at once; further mails wait for one.
const CONNECTIONS: usize = 8;
/// How long a connection is kept for the next mail. Servers close idle ones after minutes.
const IDLE: Duration = Duration::from_secs(30);
/// How long a kept connection may take to say that it is alive.
const ALIVE: Duration = Duration::from_secs(5);
/// Characters of what a server said that are kept.
const REPLY_CHARS: usize = 500;
/// Replies that ask for a login, or refuse it.
const LOGIN_REPLIES: [u16; 4] = [530, 534, 535, 538];

/// Where the server is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct SmtpConfig {
    /// Its name, which its certificate must have.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// The user and the password, if it wants them.
    pub login: Option<Login>,
    /// An authority (PEM) that is trusted as those of the system are.
    pub authority: Option<Vec<u8>>,
    /// How this program introduces itself: a domain.
    pub hello: String,
    /// How long one mail may take.
    pub timeout: Duration,
}

/// How a connection is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// It begins in plain text and is encrypted before anything is sent; a server that cannot do that
    /// gets no mail.
    #[default]
    StartTls,
    /// From the first byte.
    Tls,
    /// Not at all; on loopback only.
    None,
}

/// Who logs in.
#[derive(Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadSmtp {
    /// Mails would go over the network for all to read.
    #[error("tls: none is for a server on loopback only, such as 127.0.0.1; use starttls or tls")]
    Plain,
    /// The certificates cannot be used.
    #[error("the certificates cannot be used: {0}")]
    Certificates(String),
}

/// A server that takes mails.
pub struct Smtp {
    config: SmtpConfig,
    tls: Option<TlsParameters>,
    slots: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: AsyncSmtpConnection,
    since: Instant,
}

impl Smtp {
    /// A server; it is called when there is a mail to send.
    pub fn new(config: SmtpConfig) -> Result<Self, BadSmtp> {
        let tls = match config.encryption {
            Encryption::None if !is_loopback(&config.host) => return Err(BadSmtp::Plain),
            Encryption::None => None,
            Encryption::StartTls | Encryption::Tls => Some(tls(&config)?),
        };
        let slots = Semaphore::new(CONNECTIONS);
        Ok(Self { config, tls, slots, idle: Mutex::default() })
    }

    /// Sends a mail. Returns what the server says.
    pub(super) async fn send(&self, from: &Mailbox, mail: &Mail) -> Result<String, MailError> {
        let message = message(from, mail)?;
        let bytes = message.formatted();
        let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
        let limit = self.config.timeout;
        match timeout(limit, Box::pin(self.deliver(message.envelope(), &bytes))).await {
            Ok(reply) => reply.map(|reply| said(&reply)),
            Err(_) => {
                let why = format!("the server took longer than {} s", limit.as_secs_f64());
                Err(MailError::Unreachable(why))
            }
        }
    }

    async fn deliver(&self, envelope: &Envelope, bytes: &[u8]) -> Result<Response, MailError> {
        let mut connection = match self.kept().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let reply = connection.send(envelope, bytes).await.map_err(|error| judge(&error))?;
        self.idle.lock().push(Idle { connection, since: Instant::now() });
        Ok(reply)
    }

    /// A connection of an earlier mail that still works.
    async fn kept(&self) -> Option<AsyncSmtpConnection> {
        loop {
            let Idle { mut connection, since } = self.idle.lock().pop()?;
            let is_fresh = since.elapsed() < IDLE && !connection.has_broken();
            if is_fresh && timeout(ALIVE, connection.test_connected()).await == Ok(true) {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let SmtpConfig { host, port, encryption, login, hello, timeout, .. } = &self.config;
        let hello = ClientId::Domain(hello.clone());
        let unreachable = |error: Error| MailError::Unreachable(reason(&error));
        let tls = |when: Encryption| self.tls.clone().filter(|_| *encryption == when);
        let server = (host.as_str(), *port);
        let at_once = tls(Encryption::Tls);
        let connecting =
            AsyncSmtpConnection::connect_tokio1(server, Some(*timeout), &hello, at_once, None);
        let mut connection = connecting.await.map_err(unreachable)?;
        if let Some(tls) = tls(Encryption::StartTls) {
            connection.starttls(tls, &hello).await.map_err(unreachable)?;
        }
        if let Some(Login { user, password }) = login {
            let login = Credentials::new(user.clone(), password.clone());
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            let done = connection.auth(&mechanisms, &login).await;
            done.map_err(|error| judge_login(&error))?;
        }
        Ok(connection)
    }
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smtp").field("config", &self.config).finish_non_exhaustive()
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn tls(config: &SmtpConfig) -> Result<TlsParameters, BadSmtp> {
    let bad = |error: Error| BadSmtp::Certificates(chain(&error));
    let mut parameters = TlsParameters::builder(config.host.clone());
    if let Some(authority) = &config.authority {
        parameters =
            parameters.add_root_certificate(Certificate::from_pem(authority).map_err(bad)?);
    }
    parameters.build_rustls().map_err(bad)
}

/// What an answer to a mail means for the next attempt.
fn judge(error: &Error) -> MailError {
    let code = error.status().map(u16::from);
    if code.is_some_and(|code| LOGIN_REPLIES.contains(&code)) {
        MailError::Login(reason(error))
    } else if error.is_permanent() {
        MailError::Refused(reason(error))
    } else if error.is_transient() {
        MailError::Deferred(reason(error))
    } else {
        MailError::Unreachable(reason(error))
    }
}

/// The same for an answer to a login. What the client itself complains about is that the server offers
/// no login that it knows.
fn judge_login(error: &Error) -> MailError {
    match judge(error) {
        MailError::Refused(why) => MailError::Login(why),
        MailError::Unreachable(why) if error.is_client() => MailError::Login(why),
        other => other,
    }
}

fn reason(error: &Error) -> String {
    plain(&chain(error))
}

/// The lines of a reply on one line.
fn said(reply: &Response) -> String {
    let lines: Vec<&str> = reply.message().collect();
    plain(&format!("{} {}", reply.code(), lines.join(" ")))
}

/// What a server said, as a bounded line.
fn plain(text: &str) -> String {
    let kept = text.chars().take(REPLY_CHARS);
    kept.map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(host: &str, encryption: Encryption) -> SmtpConfig {
        SmtpConfig {
            host: host.to_owned(),
            port: 25,
            encryption,
            login: Some(Login { user: "ada".to_owned(), password: "hidden".to_owned() }),
            authority: None,
            hello: "localhost".to_owned(),
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn plain_text_stays_on_the_machine() {
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1"] {
            assert!(Smtp::new(config(host, Encryption::None)).is_ok(), "{host}");
        }
        for host in ["mail.example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0"] {
            let refused = Smtp::new(config(host, Encryption::None));
            assert!(matches!(refused, Err(BadSmtp::Plain)), "{host}");
        }
    }

    #[test]
    fn s10_a_password_is_never_shown() {
        let smtp = Smtp::new(config("localhost", Encryption::None)).unwrap();
        assert!(!format!("{smtp:?}").contains("hidden"), "{smtp:?}");
    }

    #[test]
    fn what_a_server_says_stays_on_one_short_line() {
        let text = plain(&format!("a\r\nb\u{1b}[1m{}", "x".repeat(REPLY_CHARS)));
        assert!(text.starts_with("a  b [1m") && text.chars().count() == REPLY_CHARS, "{text}");
    }
}
