use super::*;

const PARENTS: &str = r#"{"fetch":{"taskId":"t","status":"SUCCESS","result":
    {"url":"http://x/?a=\"1\"","n":123456789012345678901234567890123456789012,"f":1.50,
     "list":[1,{"b":2}],"trap":"{{ parents.fetch.status }}","none":null}}}"#;

fn rendered(payload: &str) -> String {
    render(payload, PARENTS).unwrap_or_else(|bad| panic!("{payload}: {bad:?}")).to_string()
}

fn refused(payload: &str) -> String {
    render(payload, PARENTS).unwrap_err().message
}

#[test]
fn a_string_of_one_expression_keeps_the_type_and_the_spelling() {
    for (expression, value) in [
        ("parents.fetch.result.url", r#""http://x/?a=\"1\"""#),
        ("parents.fetch.result.n", "123456789012345678901234567890123456789012"),
        ("parents.fetch.result.f", "1.50"),
        ("parents.fetch.result.list[1]", r#"{"b":2}"#),
        ("parents['fetch'].result.none", "null"),
        ("parents.fetch.result.list[0] + 41", "42"),
        ("parents.fetch.result.list", r#"[1,{"b":2}]"#),
        ("parents.fetch.result.list | length > 1", "true"),
        (
            "[parents.fetch.result.n, parents.fetch.status]",
            r#"[123456789012345678901234567890123456789012,"SUCCESS"]"#,
        ),
        ("{'a': parents.fetch.result.list}", r#"{"a":[1,{"b":2}]}"#),
        ("parents.other | default('none')", r#""none""#),
        ("'yes' if parents.fetch.status == 'SUCCESS' else 'no'", r#""yes""#),
    ] {
        let payload = format!(r#"{{"a": {} }}"#, value::quote(&format!("{{{{ {expression} }}}}")));
        assert_eq!(rendered(&payload), format!(r#"{{"a": {value} }}"#), "{expression}");
    }
}

#[test]
fn all_else_stays_byte_for_byte() {
    let payload = r#" {"big" : 1e400, "{{ x }}":[ "a b", "n={{ parents.fetch.result.n }}!" ] }"#;
    let wanted = r#" {"big" : 1e400, "{{ x }}":[ "a b", "n=123456789012345678901234567890123456789012!" ] }"#;
    assert_eq!(rendered(payload), wanted);
}

#[test]
fn what_was_inserted_is_not_rendered_again() {
    let trap = r#""{{ parents.fetch.status }}""#;
    assert_eq!(rendered(r#""{{ parents.fetch.result.trap }}""#), trap);
    assert_eq!(rendered(r#""{{ '{{' }}""#), r#""{{""#);
    let hidden = r#""\u007b{ parents.fetch.status }}""#;
    assert!(may_hold_expressions(hidden));
    assert_eq!(rendered(hidden), r#""SUCCESS""#);
}

#[test]
fn s21_what_is_undefined_or_explodes_is_an_error() {
    for payload in [
        r#""{{ parents.none.result }}""#,
        r#""{{ parents.fetch.result.none.deeper }}""#,
        r#""x {{ parents.fetch.result.list[7] }}""#,
        r#""{{ parents.fetch.result.absent + 1 }}""#,
        r#""{{ 'x' * 100000000000 }}""#,
        r#""{{ ['x'] * 100000000000 }}""#,
        r#""{{ parents.fetch.result.list | unheard_of }}""#,
    ] {
        assert!(!refused(payload).is_empty(), "{payload}");
    }
    let sum = |terms| format!(r#""{{{{ parents.fetch.result.list[0] {} }}}}""#, "+1".repeat(terms));
    assert_eq!(rendered(&sum(100)), "101");
    assert!(refused(&sum(900)).contains("fuel"), "{}", refused(&sum(900)));
    assert!(refused(&sum(2_000)).contains("at most"));
    let large = format!(r#"{{"a":{{"result":"{}"}}}}"#, "x".repeat(200_000));
    let many = [r#""{{ parents.a.result }}""#; 6].join(",");
    assert!(render(&format!("[{many}]"), &large).unwrap_err().message.contains("larger than"));
    let once = r#""{{ parents.a.result ~ '*' }}""#;
    assert_eq!(render(once, &large).unwrap().len(), 200_003);
}

#[test]
fn a_flaw_is_told_with_pointer_and_column() {
    for (payload, pointer, column) in [
        (r#"{"a":["","{{ parents. }}"]}"#, "/payload/a/1", None),
        (r#"{"a/b":"ä {% for x in y %}"}"#, "/payload/a~1b", Some(3)),
        (r#""ab{{ parents""#, "/payload", Some(3)),
        (r#""{{ parents.a + env }}""#, "/payload", Some(16)),
    ] {
        let flaw = check(payload).unwrap_err();
        assert_eq!((flaw.pointer.as_str(), flaw.code), (pointer, "INVALID_TEMPLATE"));
        if let Some(column) = column {
            let wanted = format!("at column {column}: ");
            assert!(flaw.detail.starts_with(&wanted), "{}", flaw.detail);
        }
    }
    for fine in ["null", r#""{ {""#, r#"{"a":"{{ parents['x y'].result }}"}"#] {
        assert!(check(fine).is_ok(), "{fine}");
    }
}
