use super::*;

fn value(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

fn errors(fields: Fields) -> Vec<String> {
    fields.errors.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
}

#[test]
fn fields_are_found_wherever_they_stand() {
    let mut fields = Fields::default();
    let object = value(r#" {"b": [1], "a": null, "c": {"b": 2}} "#);
    let [a, b, c, d] = fields.object(object, Place::Body, ["a", "b", "c", "d"]).unwrap();
    assert!(a.is_none() && d.is_none());
    assert_eq!((b.unwrap().get(), c.unwrap().get()), ("[1]", r#"{"b": 2}"#));
    assert_eq!(fields.end(Some(7)).unwrap(), 7);
}

#[test]
fn names_are_known_and_given_once() {
    let mut fields = Fields::default();
    let object = value(r#"{"a":null,"x/~":1,"\u0061":2}"#);
    let item = Place::Body;
    let item = item.field("items");
    fields.object(object, item.item(3), ["a"]);
    assert_eq!(errors(fields), ["/items/3/x~1~0 UNKNOWN_FIELD", "/items/3/a DUPLICATE_FIELD"]);
    let mut fields = Fields::default();
    fields.object(value(r#"{"\ud800":1}"#), Place::Body, ["a"]);
    assert!(fields.object(value("[]"), Place::Body, ["a"]).is_none());
    assert_eq!(errors(fields), [" INVALID_UNICODE", " WRONG_TYPE"]);
}

#[test]
fn lists_have_a_limit() {
    let mut fields = Fields::default();
    assert_eq!(fields.list(Some(value("[1,2]")), Place::Body, 2).len(), 2);
    assert_eq!(fields.list(None, Place::Body, 2).len(), 0);
    assert!(fields.errors.is_empty());
    assert_eq!(fields.list(Some(value("[1,2,[3],{}]")), Place::Body, 2).len(), 2);
    fields.list(Some(value("{}")), Place::Body, 2);
    fields.filled_list(Some(value("[]")), Place::Body, 2);
    fields.filled_list(Some(value("7")), Place::Body, 2);
    fields.filled_list(None, Place::Body, 2);
    assert_eq!(
        errors(fields),
        [" TOO_MANY", " WRONG_TYPE", " REQUIRED", " WRONG_TYPE", " REQUIRED"]
    );
}

#[test]
fn whole_numbers_are_exact() {
    for (text, number) in [
        ("1", Some(1)),
        ("9007199254740991", Some(EXACT)),
        ("3.0", Some(3)),
        ("1e3", Some(1000)),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("9007199254740992", None),
        ("1e400", None),
        ("\"1\"", None),
        ("true", None),
    ] {
        let mut fields = Fields::default();
        assert_eq!(fields.whole(Some(value(text)), Place::Body, 1..=EXACT), number, "{text}");
        assert_eq!(fields.errors.len(), usize::from(number.is_none()), "{text}");
    }
}

#[test]
fn seconds_keep_their_range() {
    let most = Duration::from_secs(60);
    for (text, millis) in
        [("0", Some(0)), ("1.5", Some(1500)), ("60", Some(60_000)), ("60.1", None), ("-1", None)]
    {
        let found = Fields::default().seconds(Some(value(text)), Place::Body, most);
        assert_eq!(found, millis.map(Duration::from_millis), "{text}");
    }
}

#[test]
fn ids_and_flags_are_read_as_they_are_written() {
    let mut fields = Fields::default();
    let id = "01920000-0000-7000-8000-000000000000";
    for text in [format!("\"{id}\""), format!("\"\\u0030{}\"", &id[1..])] {
        let read: Option<duly_core::id::TaskId> = fields.id(Some(value(&text)), Place::Body);
        assert_eq!(read.unwrap().to_string(), id);
    }
    assert_eq!(fields.flag(Some(value("true")), Place::Body), Some(true));
    for text in ["\"x\"", "7"] {
        let read: Option<duly_core::id::TaskId> = fields.id(Some(value(text)), Place::Body);
        assert!(read.is_none());
    }
    fields.flag(Some(value("1")), Place::Body);
    assert_eq!(errors(fields), [" INVALID_ID", " WRONG_TYPE", " WRONG_TYPE"]);
}

#[test]
fn the_list_of_errors_is_bounded() {
    let mut fields = Fields::default();
    for at in 0..ERRORS + 5 {
        fields.refuse(Place::Body.item(at), "REQUIRED", "is required");
    }
    let refused = fields.end(Some(())).unwrap_err();
    assert_eq!(refused.errors().len(), ERRORS);
    assert_eq!(refused.problem(None).detail, "/0: is required (and 24 more)");
}
