//! Sends a mail. The submit has refused what cannot be sent; payloads that were rendered or edited
//! later are checked here once more.

mod about;
mod draft;

use async_trait::async_trait;
use serde::Serialize;

pub(super) use self::about::REFERENCE;
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::mail::{MailError, Mailer};

/// The type `email`; its payload is `{to, cc?, subject?, text?, html?, template?, data?}`.
#[derive(Clone, Debug)]
pub struct Email {
    mailer: Mailer,
}

impl Email {
    /// A handler that sends by this mailer.
    pub fn new(mailer: Mailer) -> Self {
        Self { mailer }
    }
}

#[async_trait]
impl Handler for Email {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let mail = draft::mail(&context, self.mailer.templates())?;
        let sent = self.mailer.send(&mail).await;
        // Addresses are the task's business: the log has their number.
        let recipients = mail.to.len() + mail.cc.len();
        match &sent {
            Ok(said) => context.log(format_args!("recipients: {recipients}; {said}")),
            Err(error) => context.log(format_args!("recipients: {recipients}; {error}")),
        }
        sent.map_err(handler_error)?;
        Output::json(&Sent { message_id: mail.message_id(self.mailer.from()), recipients })
    }
}

/// The result of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    message_id: String,
    recipients: usize,
}

fn handler_error(error: MailError) -> HandlerError {
    match error {
        MailError::Refused(why) => HandlerError::fail("MAIL_REFUSED", why),
        MailError::Deferred(why) => HandlerError::retry("MAIL_DEFERRED", why),
        MailError::Login(why) => HandlerError::retry("MAIL_LOGIN", why),
        MailError::Unreachable(why) => HandlerError::retry("MAIL_CONNECT", why),
        MailError::Outbox(why) => HandlerError::retry("MAIL_OUTBOX", why),
    }
}
