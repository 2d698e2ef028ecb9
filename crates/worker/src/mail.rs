//! Mails: what they say, and how they leave. A [`Mailer`] sends them to an SMTP server, or keeps them
//! in a folder where there is none. It does not know the tasks that it sends mails for.

mod message;
mod outbox;
mod smtp;
mod templates;

use std::sync::Arc;

use duly_core::mail::Mailbox;

pub use self::outbox::{Outbox, StoredMail};
pub use self::smtp::{BadSmtp, Encryption, Login, Smtp, SmtpConfig};
pub use self::templates::{BadTemplates, Rendered, TemplateError, Templates};

/// A mail without its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Names the mail for all time: a mail that is sent twice has the same. The mail shows it with the
    /// sender's domain.
    pub key: String,
    /// Whom it is for; at least one.
    pub to: Vec<Mailbox>,
    /// Who gets a copy.
    pub cc: Vec<Mailbox>,
    /// One line.
    pub subject: String,
    /// The text; a mail without text and HTML has an empty text.
    pub text: Option<String>,
    /// The same as HTML.
    pub html: Option<String>,
}

impl Mail {
    /// Its `Message-ID` from this sender, without the angle brackets.
    pub fn message_id(&self, from: &Mailbox) -> String {
        format!("{}@{}", self.key, from.domain())
    }
}

/// Why a mail did not leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The server will never take it.
    #[error("{0}")]
    Refused(String),
    /// The server does not take it now.
    #[error("{0}")]
    Deferred(String),
    /// The server does not accept user and password, or asks for them.
    #[error("{0}")]
    Login(String),
    /// The server was not reached, or was silent for too long.
    #[error("{0}")]
    Unreachable(String),
    /// The outbox cannot be written.
    #[error("{0}")]
    Outbox(String),
}

/// Sends mails. A clone shares connections and templates.
#[derive(Clone, Debug)]
pub struct Mailer {
    from: Mailbox,
    templates: Arc<Templates>,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Smtp(Arc<Smtp>),
    Outbox(Arc<Outbox>),
}

impl Mailer {
    /// Sends to a server.
    pub fn smtp(from: Mailbox, templates: Templates, smtp: Smtp) -> Self {
        Self { from, templates: Arc::new(templates), way: Way::Smtp(Arc::new(smtp)) }
    }

    /// Keeps mails in a folder.
    pub fn outbox(from: Mailbox, templates: Templates, outbox: Outbox) -> Self {
        Self { from, templates: Arc::new(templates), way: Way::Outbox(Arc::new(outbox)) }
    }

    /// Who its mails are from.
    pub fn from(&self) -> &Mailbox {
        &self.from
    }

    /// The templates of mails.
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// Sends a mail to all of its recipients or to none. Returns a line for people about it.
    pub async fn send(&self, mail: &Mail) -> Result<String, MailError> {
        match &self.way {
            Way::Smtp(smtp) => smtp.send(&self.from, mail).await,
            Way::Outbox(outbox) => outbox.store(&self.from, mail).await,
        }
    }
}
