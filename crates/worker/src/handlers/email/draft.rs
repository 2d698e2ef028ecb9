//! Turns a payload into a mail. Finds all errors of the payload before a server is called.

use std::collections::BTreeMap;

use duly_core::limits::MAIL_RECIPIENTS;
use duly_core::mail::{Mailbox, check_subject};
use serde::Deserialize;
use serde_json::Value;

use crate::handler::{Context, HandlerError};
use crate::mail::{Mail, Rendered, Templates};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    to: Recipients,
    #[serde(default)]
    cc: Recipients,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    template: Option<String>,
    data: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "to and cc must be an address or a list of them")]
enum Recipients {
    One(String),
    Many(Vec<String>),
}

impl Default for Recipients {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// The mail of an attempt.
pub(super) fn mail(context: &Context, templates: &Templates) -> Result<Mail, HandlerError> {
    let payload: Payload = context.payload()?;
    let (to, cc) = (mailboxes("to", &payload.to)?, mailboxes("cc", &payload.cc)?);
    if to.is_empty() {
        return Err(HandlerError::invalid_payload("to must name at least one address"));
    }
    if to.len() + cc.len() > MAIL_RECIPIENTS {
        let why = format!("to and cc may name {MAIL_RECIPIENTS} addresses together");
        return Err(HandlerError::invalid_payload(why));
    }
    let Rendered { subject, text, html } = content(payload, templates)?;
    let subject = subject.ok_or_else(|| HandlerError::invalid_payload("subject is missing"))?;
    check_subject(&subject)
        .map_err(|why| HandlerError::invalid_payload(format!("the subject {why}")))?;
    // The same for every attempt of one run, so that a mail that comes twice can be recognised.
    Ok(Mail { key: context.idempotency_key(), to, cc, subject, text, html })
}

/// What the mail says: as the payload has it, or as its template writes it.
fn content(payload: Payload, templates: &Templates) -> Result<Rendered, HandlerError> {
    let Payload { subject, text, html, template, data, .. } = payload;
    let Some(name) = template else {
        if data.is_some() {
            return Err(HandlerError::invalid_payload("data is for a template; name one"));
        }
        return Ok(Rendered { subject, text, html });
    };
    if text.is_some() || html.is_some() {
        return Err(HandlerError::invalid_payload("give text and html, or a template, not both"));
    }
    let data = Value::Object(data.unwrap_or_default().into_iter().collect());
    let rendered = templates.render(&name, &data);
    let rendered = rendered.map_err(|why| HandlerError::fail("MAIL_TEMPLATE", why.to_string()))?;
    Ok(Rendered { subject: subject.or(rendered.subject), ..rendered })
}

fn mailboxes(field: &str, given: &Recipients) -> Result<Vec<Mailbox>, HandlerError> {
    let list = match given {
        Recipients::One(text) => std::slice::from_ref(text),
        Recipients::Many(list) => list,
    };
    let parse = |text: &String| {
        let bad = |why| HandlerError::invalid_payload(format!("{field}: {text:?} {why}"));
        text.parse().map_err(bad)
    };
    list.iter().map(parse).collect()
}
