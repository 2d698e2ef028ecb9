use super::*;

fn mailbox(text: &str) -> Result<Mailbox, BadMailbox> {
    text.parse()
}

fn errors(payload: &str, is_rendered: bool) -> Vec<(String, &'static str)> {
    let errors = check_payload(payload, is_rendered);
    errors.into_iter().map(|error| (error.pointer, error.code)).collect()
}

#[test]
fn addresses_are_taken_with_and_without_a_name() {
    for (text, shown) in [
        ("ada@example.com", "ada@example.com"),
        ("a.b+c@mail.example.co", "a.b+c@mail.example.co"),
        ("root@localhost", "root@localhost"),
        ("<ada@example.com>", "ada@example.com"),
        ("Ada <ada@example.com>", "Ada <ada@example.com>"),
        ("\"Lovelace, Ada\" <ada@example.com>", "Lovelace, Ada <ada@example.com>"),
        ("Ädä@home <ada@xn--exmple-cua.com>", "Ädä@home <ada@xn--exmple-cua.com>"),
    ] {
        assert_eq!(mailbox(text).unwrap().to_string(), shown);
    }
    let parsed = mailbox("Ada <ada@example.com>").unwrap();
    assert_eq!(
        (parsed.name(), parsed.local(), parsed.domain()),
        (Some("Ada"), "ada", "example.com")
    );
}

#[test]
fn what_is_no_address_is_refused() {
    let long_local = format!("{}@example.com", "a".repeat(65));
    let long_name = format!("{} <a@b>", "n".repeat(MAIL_NAME_CHARS + 1));
    let long = format!("a@{}", "b.".repeat(MAIL_ADDRESS_CHARS));
    for text in [
        "",
        "ada",
        "@example.com",
        "ada@",
        "ada@@example.com",
        "ada lovelace@example.com",
        "ada@example..com",
        ".ada@example.com",
        "ada@-example.com",
        "ada@exämple.com",
        "ada@[127.0.0.1]",
        "\"a b\"@example.com",
        "a@example.com,b@example.com",
        "a@example.com b@example.com",
        "Ada <ada@example.com",
        "Ada <ada@example.com> <b@example.com>",
        "Ada\" <ada@example.com>",
        "<>",
        &long_local,
        &long_name,
        &long,
    ] {
        assert!(mailbox(text).is_err(), "{text:?}");
    }
}

#[test]
fn s17_line_breaks_are_refused_everywhere() {
    for end in ["\r\nBcc: eve@example.com", "\n", "\r", "\0", "\u{85}"] {
        for text in [format!("ada@example.com{end}"), format!("Ada{end} <ada@example.com>")] {
            assert!(mailbox(&text).is_err(), "{text:?}");
        }
        assert!(check_subject(&format!("Hello{end}")).is_err(), "{end:?}");
    }
    assert_eq!(check_subject("Grüße an dich"), Ok(()));
}

#[test]
fn every_wrong_part_of_a_payload_is_named() {
    let payload = r#"{"to": ["a@x.y", "b"], "cc": "c\nd", "subject": "e\rf"}"#;
    let expected = [
        ("/payload/to/1", "INVALID_ADDRESS"),
        ("/payload/cc", "INVALID_ADDRESS"),
        ("/payload/subject", "INVALID_HEADER"),
    ];
    assert_eq!(errors(payload, false), expected.map(|(at, code)| (at.to_owned(), code)));
    let many = vec!["a@x.y"; MAIL_RECIPIENTS];
    let payload = serde_json::json!({"to": many, "cc": "a@x.y"}).to_string();
    assert_eq!(errors(&payload, false), [("/payload/to".to_owned(), "TOO_MANY")]);
}

#[test]
fn other_shapes_are_for_the_handler() {
    for payload in ["null", "7", "{}", r#"{"to": 7, "subject": []}"#, r#"{"to": [{}]}"#] {
        assert!(check_payload(payload, false).is_empty(), "{payload}");
    }
}

#[test]
fn expressions_are_judged_once_they_are_rendered() {
    let payload = r#"{"to": "{{ parents.a.result }}", "subject": "{{ x }}\n", "cc": "b"}"#;
    assert_eq!(errors(payload, true), [("/payload/cc".to_owned(), "INVALID_ADDRESS")]);
    assert_eq!(errors(payload, false).len(), 3);
}
