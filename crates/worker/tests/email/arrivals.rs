//! Mails that arrive.

use duly_testkit::MailServer;
use duly_worker::mail::{Encryption, SmtpConfig};
use serde_json::json;

use crate::support::{certificate, context, handler, run, to, usual, usual_server};

#[tokio::test]
async fn a_mail_arrives_by_starttls_with_a_login() {
    let Some(mut server) = usual_server().await else { return };
    let handler = handler(usual(server.port()));
    let payload = json!({
        "to": ["\"Lovelace, Ada\" <ada@example.com>", "bob@example.com"],
        "cc": "Jürgen <jo@example.com>",
        "subject": "Grüße: der Bericht ist fertig, und dieser Betreff ist länger als eine Zeile sein darf",
        "text": "Zeile 1\nZeile 2 — fertig.\n.\nZeile 4",
        "html": "<p>fertig</p>",
    });
    let result = run(&handler, &payload).await.unwrap();
    let id = format!("{}@example.com", context(&payload).idempotency_key());
    assert_eq!(result, json!({"messageId": id, "recipients": 3}));
    let mail = server.mail().await.unwrap();
    assert_eq!((&mail["encrypted"], &mail["user"]), (&json!(true), &json!("duly")));
    assert_eq!(mail["defects"], json!([]));
    assert_eq!(mail["sender"], "duly@example.com");
    assert_eq!(mail["recipients"], json!(["ada@example.com", "bob@example.com", "jo@example.com"]));
    let addresses = json!({
        "from": [["Duly", "duly@example.com"]],
        "to": [["Lovelace, Ada", "ada@example.com"], ["", "bob@example.com"]],
        "cc": [["Jürgen", "jo@example.com"]],
    });
    assert_eq!(mail["addresses"], addresses);
    assert_eq!(mail["headers"]["Subject"], payload["subject"]);
    assert_eq!(mail["headers"]["Message-ID"], format!("<{id}>"));
    assert_eq!(mail["headers"]["Auto-Submitted"], "auto-generated");
    let text = mail["text"].as_str().unwrap().replace("\r\n", "\n");
    assert_eq!(text.trim_end(), payload["text"].as_str().unwrap());
    assert_eq!(mail["html"].as_str().unwrap().trim_end(), "<p>fertig</p>");
}

#[tokio::test]
async fn a_mail_arrives_by_tls_and_one_without_text_is_empty() {
    let flags = ["--tls", "tls", "--certificate", certificate(), "--login"];
    let Some(mut server) = MailServer::start(&flags).await.unwrap() else { return };
    let config = SmtpConfig { encryption: Encryption::Tls, ..usual(server.port()) };
    run(&handler(config), &to("ada@example.com")).await.unwrap();
    let mail = server.mail().await.unwrap();
    assert_eq!(mail["encrypted"], true);
    assert_eq!((mail["text"].as_str().unwrap().trim_end(), &mail["html"]), ("", &json!(null)));
}

#[tokio::test]
async fn a_repeated_mail_has_the_same_id_and_connections_are_used_again() {
    let Some(mut server) = usual_server().await else { return };
    let handler = handler(usual(server.port()));
    for _ in 0..2 {
        run(&handler, &to("ada@example.com")).await.unwrap();
    }
    let (first, second) = (server.mail().await.unwrap(), server.mail().await.unwrap());
    assert_eq!(first["headers"]["Message-ID"], second["headers"]["Message-ID"]);
    assert_eq!(first["peer"], second["peer"], "a second connection was made");
}

#[tokio::test]
async fn many_mails_at_once_all_arrive() {
    let Some(mut server) = usual_server().await else { return };
    let handler = handler(usual(server.port()));
    let payloads: Vec<_> = (0..40).map(|n| to(&format!("user{n}@example.com"))).collect();
    let all = payloads.iter().map(|payload| run(&handler, payload));
    let all = futures_util::future::join_all(all);
    all.await.into_iter().for_each(|result| drop(result.unwrap()));
    let mut seen = std::collections::BTreeSet::new();
    for _ in &payloads {
        let mail = server.mail().await.unwrap();
        let recipients = mail["recipients"].as_array().unwrap();
        assert_eq!(recipients.len(), 1, "{mail}");
        assert_eq!(mail["addresses"]["to"][0][1], recipients[0], "{mail}");
        seen.insert(recipients[0].to_string());
    }
    assert_eq!(seen.len(), payloads.len());
}

#[tokio::test]
async fn a_template_writes_the_mail() {
    let Some(mut server) = usual_server().await else { return };
    let payload = json!({
        "to": "ada@example.com", "template": "notice",
        "data": {"title": "Done", "text": "a < b"},
    });
    run(&handler(usual(server.port())), &payload).await.unwrap();
    let mail = server.mail().await.unwrap();
    assert_eq!(mail["headers"]["Subject"], "Done");
    assert!(mail["text"].as_str().unwrap().contains("a < b"), "{mail}");
    assert!(mail["html"].as_str().unwrap().contains("a &lt; b"), "{mail}");
}
