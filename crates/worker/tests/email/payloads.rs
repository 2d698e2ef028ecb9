//! Payloads that are refused before a server is called, and the outbox.

use serde_json::{Value, json};

use crate::support::{context, failure, run, with_outbox};

async fn refused(payload: Value) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = folder.path().join("outbox");
    let (decision, error) = failure(run(&with_outbox(outbox.clone()), &payload).await);
    assert_eq!(decision, "fail", "{payload}");
    assert!(!outbox.exists(), "{payload} was stored");
    (error.code, error.message)
}

#[tokio::test]
async fn payloads_that_make_no_mail_are_refused() {
    let many = vec!["ada@example.com"; 51];
    for (payload, words) in [
        (json!({"subject": "a"}), "missing field `to`"),
        (json!({"to": [], "subject": "a"}), "to must name at least one address"),
        (json!({"to": many, "subject": "a"}), "50 addresses"),
        (json!({"to": 7, "subject": "a"}), "must be an address or a list"),
        (json!({"to": "ada", "subject": "a"}), "to: \"ada\" is not an address"),
        (json!({"to": "a@b", "cc": ["x"], "subject": "a"}), "cc: \"x\" is not an address"),
        (json!({"to": "a@b"}), "subject is missing"),
        (json!({"to": "a@b", "subject": "a", "bcc": "c@d"}), "unknown field `bcc`"),
        (json!({"to": "a@b", "subject": "a", "data": {}}), "data is for a template"),
        (json!({"to": "a@b", "text": "x", "template": "notice"}), "not both"),
        (json!({"to": "a@b", "template": "notice", "data": 7}), "invalid type"),
    ] {
        let (code, message) = refused(payload.clone()).await;
        assert_eq!(code, "INVALID_PAYLOAD", "{payload}");
        assert!(message.contains(words), "{payload}: {message}");
    }
    let (code, message) = refused(json!({"to": "a@b", "template": "notice"})).await;
    assert_eq!(code, "MAIL_TEMPLATE");
    assert!(message.contains("notice.subject"), "{message}");
}

/// As after an edit, which does not check payloads.
#[tokio::test]
async fn s17_line_breaks_never_add_a_recipient() {
    for end in ["\r\nBcc: eve@example.com", "\nBcc: eve@example.com", "\r", "\u{0}"] {
        for payload in [
            json!({"to": format!("ada@example.com{end}"), "subject": "a"}),
            json!({"to": format!("Ada{end} <ada@example.com>"), "subject": "a"}),
            json!({"to": "ada@example.com", "cc": [format!("b@example.com{end}")], "subject": "a"}),
            json!({"to": "ada@example.com", "subject": format!("a{end}")}),
            json!({"to": "ada@example.com", "template": "notice",
                   "data": {"title": format!("a{end}b"), "text": ""}}),
        ] {
            let (code, _) = refused(payload.clone()).await;
            assert!(["INVALID_PAYLOAD", "MAIL_TEMPLATE"].contains(&code.as_str()), "{payload}");
        }
    }
}

#[tokio::test]
async fn mails_go_to_the_outbox_and_the_log_has_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let handler = with_outbox(folder.path().to_owned());
    let context = context(&json!({"to": "ada@example.com", "subject": "Hello"}));
    let key = context.idempotency_key();
    duly_worker::Handler::run(&handler, context.clone()).await.unwrap();
    assert!(folder.path().join(format!("{key}.eml")).exists());
    let log = context.logged().unwrap();
    assert!(log.contains("recipients: 1; stored"), "{log}");
    assert!(log.contains(&format!("duly notify outbox {key}")), "{log}");
    assert!(!log.contains("ada"), "{log}");
}
