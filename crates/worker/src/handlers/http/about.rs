//! The description of the type `http`.

use crate::handlers::reference::{
    ErrorCode, Example, Outcome, PayloadField, Reference, ResultField, Retried,
};

pub(in crate::handlers) const REFERENCE: Reference = Reference {
    r#type: "http",
    summary: "Sends one HTTP request; the status of the answer decides the outcome.",
    flag: None,
    notes: &[
        "Every request carries `Duly-Task-Id`, `Duly-Epoch`, `Duly-Attempt` and `Idempotency-Key`, \
         which is the same for every attempt of one run: a target that honours it does the work \
         once. Redirects are not followed, and proxies are not used. The time limit is the task's \
         `timeoutSeconds`; a connection must be made within 10 s.",
        "Only public addresses are called, so that a task cannot reach your network, and only on \
         the ports 80, 443, 8080 and 8443. `duly dev` also allows loopback; `duly serve` and `duly \
         worker run` allow the networks that `--allow-net` names, on every port, and the ports that \
         `--allow-port` names. A name that has any other address is not called at all. The body of \
         the answer must arrive within 30 s; it is not unpacked.",
        "The log of an attempt gets one line: method, host, path, status and duration, without the \
         query and the headers. The payload itself is stored as it is: keep secrets out of it.",
    ],
    payload: PAYLOAD,
    result: RESULT,
    errors: ERRORS,
    examples: EXAMPLES,
};

const PAYLOAD: &[PayloadField] = &[
    PayloadField {
        name: "url",
        r#type: "string",
        default: None,
        meaning: "Where to send the request: `http://` or `https://`, without user name and password.",
    },
    PayloadField {
        name: "method",
        r#type: "string",
        default: Some("`GET`; `POST` with a body"),
        meaning: "`GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.",
    },
    PayloadField {
        name: "headers",
        r#type: "object of strings",
        default: Some("none"),
        meaning: "Headers to send. Those that Duly or HTTP itself sets cannot be given: `Host`, \
                  `Content-Length`, `Connection`, `User-Agent`, `Idempotency-Key`, names that \
                  begin with `Duly-` or `Proxy-`, and a few more. A submit with such a header is \
                  refused.",
    },
    PayloadField {
        name: "body",
        r#type: "any JSON",
        default: Some("none"),
        meaning: "A string is sent as its text; anything else as JSON, with `Content-Type: \
                  application/json` unless `headers` has another.",
    },
    PayloadField {
        name: "expectStatus",
        r#type: "status or array of them, 200 to 599",
        default: Some("any 2xx"),
        meaning: "The statuses that are a success.",
    },
];

const RESULT: &[ResultField] = &[
    ResultField { name: "status", r#type: "whole number", meaning: "The status of the answer." },
    ResultField {
        name: "headers",
        r#type: "object",
        meaning: "`content-type` of the answer, if it has one; no other header is kept.",
    },
    ResultField {
        name: "body",
        r#type: "string",
        meaning: "The first 64 KiB of the body as text. What is not UTF-8 is replaced by `\u{fffd}`.",
    },
    ResultField {
        name: "truncated",
        r#type: "boolean",
        meaning: "Whether the body was longer than what is kept.",
    },
];

const ERRORS: &[ErrorCode] = &[
    ErrorCode {
        code: "HTTP_STATUS",
        retried: Retried::Sometimes,
        meaning: "The status was not expected. 5xx, 408, 409, 425 and 429 are retried, after the \
                  time in `Retry-After` if the answer has one; others fail the task at once. The \
                  message begins with the status and holds the first 1 KiB of the body.",
    },
    ErrorCode {
        code: "HTTP_CONNECT",
        retried: Retried::Yes,
        meaning: "No connection to the target: the name is unknown, nothing listens there, or \
                  TLS failed.",
    },
    ErrorCode {
        code: "HTTP_ERROR",
        retried: Retried::Yes,
        meaning: "The connection broke, the answer was not HTTP or had too many headers, or its \
                  body took longer than 30 s.",
    },
    ErrorCode {
        code: "ADDRESS_REFUSED",
        retried: Retried::No,
        meaning: "The address of the target is not public and not allowed by `--allow-net`, or its \
                  port is not allowed by `--allow-port`.",
    },
];

const EXAMPLES: &[Example] = &[
    Example {
        title: "Ask the server itself whether it is alive",
        payload: r#"{"url": "http://127.0.0.1:8080/livez"}"#,
        outcome: Outcome::Result(
            r#"{"status": 200, "headers": {"content-type": "application/json"}, "body": "{\"status\":\"ok\"}", "truncated": false}"#,
        ),
    },
    Example {
        title: "Post JSON",
        payload: r#"{"url": "http://127.0.0.1:8080/tasks", "body": {"type": "echo"}, "expectStatus": 201}"#,
        outcome: Outcome::Result(
            r#"{"status": 201, "headers": {"content-type": "application/json"}, "body": "{\"taskId\":\"…\"}", "truncated": false}"#,
        ),
    },
    Example {
        title: "A status that no retry will change",
        payload: r#"{"url": "http://127.0.0.1:8080/no/such/page"}"#,
        outcome: Outcome::Error("HTTP_STATUS"),
    },
    Example {
        title: "An address of the local network",
        payload: r#"{"url": "http://10.0.0.1/"}"#,
        outcome: Outcome::Error("ADDRESS_REFUSED"),
    },
];
