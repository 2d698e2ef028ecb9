use serde_json::json;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn built_in_templates_render_in_all_parts() {
    let templates = Templates::built_in();
    assert_eq!(templates.names(), ["notice", "welcome"]);
    let data = json!({"title": "Done", "text": "All <done>.", "link": "https://example.com/?a&b"});
    let notice = templates.render("notice", &data).unwrap();
    assert_eq!(notice.subject.as_deref(), Some("Done"));
    let text = "Done\n\nAll <done>.\n\nhttps://example.com/?a&b\n";
    assert_eq!(notice.text.unwrap().trim_end(), text.trim_end());
    let html = notice.html.unwrap();
    assert!(html.contains("All &lt;done&gt;."), "{html}");
    assert!(html.contains("?a&amp;b"), "{html}");
    let welcome = templates.render("welcome", &json!({"product": "Duly"})).unwrap();
    assert_eq!(welcome.text.unwrap().trim_end(), "Hello,\n\nwelcome to Duly.");
}

#[test]
fn a_folder_adds_and_replaces_templates() {
    let folder = folder(&[
        ("notice.txt", "our own {{ x }}"),
        ("bill.subject", "Bill {{ number }}\n"),
        ("bill.html", "<b>{{ number }}</b>"),
        ("README.md", "{{ no template"),
    ]);
    let templates = Templates::with_folder(folder.path()).unwrap();
    assert_eq!(templates.names(), ["bill", "notice", "welcome"]);
    let notice = templates.render("notice", &json!({"x": 1})).unwrap();
    let expected = Rendered { text: Some("our own 1".to_owned()), ..Rendered::default() };
    assert_eq!(notice, expected, "no part of the built-in one is left");
    let bill = templates.render("bill", &json!({"number": 7})).unwrap();
    assert_eq!(bill.subject.as_deref(), Some("Bill 7"));
}

#[test]
fn mistakes_name_the_file() {
    let folder = folder(&[("bad.txt", "{% if %}")]);
    let why = Templates::with_folder(folder.path()).unwrap_err().to_string();
    assert!(why.contains("bad.txt"), "{why}");
    let missing = folder.path().join("nowhere");
    assert!(Templates::with_folder(&missing).unwrap_err().to_string().contains("nowhere"));

    let templates = Templates::built_in();
    let unknown = templates.render("nope", &json!({})).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no template `nope`; there are notice, welcome");
    let why = templates.render("notice", &json!({"title": "x"})).unwrap_err().to_string();
    assert!(why.starts_with("notice.txt: "), "{why}");
}

#[test]
fn a_name_leads_to_no_other_file() {
    let folder = folder(&[("a.txt", "a")]);
    let templates = Templates::with_folder(folder.path()).unwrap();
    for name in ["../a", "a.txt", "", ".", "a\0"] {
        let error = templates.render(name, &json!({})).unwrap_err();
        assert!(matches!(error, TemplateError::Unknown { .. }), "{name:?}");
    }
}

#[test]
fn s17_data_cannot_break_the_line_of_a_subject() {
    let data = json!({"title": "a\r\nBcc: eve@example.com", "text": ""});
    let why = Templates::built_in().render("notice", &data).unwrap_err().to_string();
    assert!(why.starts_with("notice.subject: the subject holds a control character"), "{why}");
}

#[test]
fn s28_work_and_size_of_a_template_are_bounded() {
    let folder = folder(&[
        (
            "loop.txt",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        ),
        ("large.txt", "{% for a in list %}{{ text }}{% endfor %}"),
    ]);
    let templates = Templates::with_folder(folder.path()).unwrap();
    let why = templates.render("loop", &json!({})).unwrap_err().to_string();
    assert!(why.contains("fuel"), "{why}");
    let data = json!({"list": vec![0; 100], "text": "x".repeat(100_000)});
    let why = templates.render("large", &data).unwrap_err().to_string();
    assert!(why.contains("larger than"), "{why}");
}
