//! The description of the type `email`.

use crate::handlers::reference::{
    ErrorCode, Example, Outcome, PayloadField, Reference, ResultField, Retried,
};

pub(in crate::handlers) const REFERENCE: Reference = Reference {
    r#type: "email",
    summary: "Sends a mail.",
    flag: Some("smtp"),
    notes: &[
        "`duly serve` runs this type if its file names a server under `smtp` \
         ([operations.md](operations.md#mails)). `duly dev` sends nothing: it keeps mails in its \
         outbox, and `duly notify outbox` shows them.",
        "A mail goes to all of its recipients or, if the server refuses one of them, to none. Its \
         `Message-ID` is the same for every attempt of one run: a mail that arrives twice, since a \
         worker died after it was sent, can be recognised.",
        "A template writes text, HTML and subject, with the values in `data`. `notice` (`title`, \
         `text`, `link`, `linkText`) and `welcome` (`product`, `name`, `link`) are built in; the \
         operator may add others and replace these. `duly notify preview` renders one.",
        "The log of an attempt has the number of recipients and what the server said. The payload \
         itself is stored as it is.",
    ],
    payload: PAYLOAD,
    result: RESULT,
    errors: ERRORS,
    examples: EXAMPLES,
};

const PAYLOAD: &[PayloadField] = &[
    PayloadField {
        name: "to",
        r#type: "address or array of them",
        default: None,
        meaning: "Whom it is for: `ada@example.com` or `Ada <ada@example.com>`. `to` and `cc` name \
                  at most 50 addresses together. A submit with an address that cannot be used is \
                  refused.",
    },
    PayloadField {
        name: "cc",
        r#type: "address or array of them",
        default: Some("none"),
        meaning: "Who gets a copy.",
    },
    PayloadField {
        name: "subject",
        r#type: "string",
        default: Some("that of the template"),
        meaning: "One line of at most 500 characters; required without a template.",
    },
    PayloadField { name: "text", r#type: "string", default: Some("empty"), meaning: "The text." },
    PayloadField {
        name: "html",
        r#type: "string",
        default: Some("none"),
        meaning: "The same as HTML.",
    },
    PayloadField {
        name: "template",
        r#type: "string",
        default: Some("none"),
        meaning: "The name of a template, in place of `text` and `html`.",
    },
    PayloadField {
        name: "data",
        r#type: "object",
        default: Some("none"),
        meaning: "The values of the template.",
    },
];

const RESULT: &[ResultField] = &[
    ResultField {
        name: "messageId",
        r#type: "string",
        meaning: "The `Message-ID` of the mail, without the angle brackets.",
    },
    ResultField {
        name: "recipients",
        r#type: "whole number",
        meaning: "How many addresses it went to.",
    },
];

const ERRORS: &[ErrorCode] = &[
    ErrorCode {
        code: "MAIL_REFUSED",
        retried: Retried::No,
        meaning: "The mail server refused the mail or one of its recipients for good (5xx). The \
                  message has its answer.",
    },
    ErrorCode {
        code: "MAIL_DEFERRED",
        retried: Retried::Yes,
        meaning: "The mail server did not take the mail now (4xx): it is busy, or makes unknown \
                  senders wait (greylisting).",
    },
    ErrorCode {
        code: "MAIL_CONNECT",
        retried: Retried::Yes,
        meaning: "No connection to the mail server: nothing listens there, TLS failed, or it took \
                  longer than `smtp.timeout`.",
    },
    ErrorCode {
        code: "MAIL_LOGIN",
        retried: Retried::Yes,
        meaning: "The mail server refused the user or the password of `smtp`, or asks for them.",
    },
    ErrorCode {
        code: "MAIL_TEMPLATE",
        retried: Retried::No,
        meaning: "There is no such template, or it does not fit the data. The message names the \
                  file and the line.",
    },
    ErrorCode {
        code: "MAIL_OUTBOX",
        retried: Retried::Yes,
        meaning: "`duly dev` cannot write to its outbox.",
    },
];

const EXAMPLES: &[Example] = &[
    Example {
        title: "A mail without text",
        payload: r#"{"to": "user@example.com", "subject": "Welcome"}"#,
        outcome: Outcome::Result(
            r#"{"messageId": "01984f6e-75a7-7bd8-b7a5-2f6cf4f3a1c2-1@localhost", "recipients": 1}"#,
        ),
    },
    Example {
        title: "A template for two",
        payload: r#"{"to": ["Ada <ada@example.com>", "bob@example.com"], "template": "notice", "data": {"title": "Done", "text": "The report is ready."}}"#,
        outcome: Outcome::Result(
            r#"{"messageId": "01984f6e-75a7-7bd8-b7a5-2f6cf4f3a1c2-1@localhost", "recipients": 2}"#,
        ),
    },
    Example {
        title: "A template that does not exist",
        payload: r#"{"to": "user@example.com", "template": "no-such-template"}"#,
        outcome: Outcome::Error("MAIL_TEMPLATE"),
    },
];
