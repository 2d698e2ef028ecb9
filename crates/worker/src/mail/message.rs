//! A mail as a message of RFC 5322.

use duly_core::mail::Mailbox;
use lettre::Address;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox as Shown, Message, MultiPart, SinglePart};

use super::{Mail, MailError};

/// Tells programs that answer mails, such as absence notes, to leave this one alone (RFC 3834).
const AUTO_SUBMITTED: (&str, &str) = ("Auto-Submitted", "auto-generated");

/// The message of a mail. Whom it goes to is what its headers say.
pub(super) fn message(from: &Mailbox, mail: &Mail) -> Result<Message, MailError> {
    let id = format!("<{}>", mail.message_id(from));
    let (name, value) = AUTO_SUBMITTED;
    let mut message = Message::builder()
        .from(shown(from)?)
        .subject(mail.subject.clone())
        .message_id(Some(id))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned()));
    for mailbox in &mail.to {
        message = message.to(shown(mailbox)?);
    }
    for mailbox in &mail.cc {
        message = message.cc(shown(mailbox)?);
    }
    let message = match (mail.text.clone(), mail.html.clone()) {
        (Some(text), Some(html)) => {
            message.multipart(MultiPart::alternative_plain_html(text, html))
        }
        (None, Some(html)) => message.singlepart(SinglePart::html(html)),
        (text, None) => message.singlepart(SinglePart::plain(text.unwrap_or_default())),
    };
    message.map_err(|error| MailError::Refused(error.to_string()))
}

fn shown(mailbox: &Mailbox) -> Result<Shown, MailError> {
    let address = Address::new(mailbox.local(), mailbox.domain());
    let address = address.map_err(|error| MailError::Refused(format!("{mailbox}: {error}")))?;
    Ok(Shown::new(mailbox.name().map(str::to_owned), address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mail: &Mail) -> String {
        let message = message(&"Duly <duly@localhost>".parse().unwrap(), mail).unwrap();
        String::from_utf8(message.formatted()).unwrap()
    }

    fn mail() -> Mail {
        Mail {
            key: "k-1".to_owned(),
            to: vec!["\"Lovelace, Ada\" <ada@example.com>".parse().unwrap()],
            cc: vec!["Jürgen <j@example.com>".parse().unwrap()],
            subject: "Größe".to_owned(),
            text: None,
            html: None,
        }
    }

    #[test]
    fn headers_are_in_ascii_and_name_the_mail() {
        let text = written(&mail());
        assert!(text.is_ascii(), "{text}");
        for line in [
            "From: Duly <duly@localhost>\r\n",
            "To: =?utf-8?b?TG92ZWxhY2UsIEFkYQ==?= <ada@example.com>\r\n",
            "Message-ID: <k-1@localhost>\r\n",
            "Auto-Submitted: auto-generated\r\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.ends_with("\r\n\r\n"), "an empty text: {text:?}");
    }

    #[test]
    fn a_body_has_the_parts_that_are_given() {
        let part = |text: bool, html: bool| Mail {
            text: text.then(|| "words".to_owned()),
            html: html.then(|| "<b>".to_owned()),
            ..mail()
        };
        let types = |mail: &Mail| {
            let written = written(mail);
            ["alternative", "text/plain", "text/html"].map(|part| written.contains(part))
        };
        assert_eq!(types(&part(false, false)), [false, true, false]);
        assert_eq!(types(&part(true, false)), [false, true, false]);
        assert_eq!(types(&part(false, true)), [false, false, true]);
        assert_eq!(types(&part(true, true)), [true, true, true]);
    }
}
