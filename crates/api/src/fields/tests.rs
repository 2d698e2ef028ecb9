use super::*;

fn field(text: &str) -> Field<'_, 'static> {
    Field::body(serde_json::from_str(text).unwrap())
}

const ABSENT: Field<'static, 'static> = Field { value: None, at: Pointer::Root };

/// A wire type of four fields.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    #[expect(dead_code, reason = "only the names count")]
    a: Option<String>,
    #[expect(dead_code, reason = "only the names count")]
    b: Option<String>,
    #[expect(dead_code, reason = "only the names count")]
    two_words: Option<String>,
    #[expect(dead_code, reason = "only the names count")]
    r#type: String,
}

const NAMES: [&str; 4] = ["a", "b", "twoWords", "type"];

fn ask_for_all(object: Option<Object<'_, '_>>) -> bool {
    object.is_some_and(|object| NAMES.map(|name| object.field(name)).len() == NAMES.len())
}

#[test]
fn the_wire_type_names_the_fields() {
    assert_eq!(names::of::<Wire>(), NAMES);
    assert_eq!(names::of::<String>(), [""; 0]);
    let submit = names::of::<duly_client::wire::SubmitRequest>();
    let edit = names::of::<duly_client::wire::EditRequest>();
    assert!(edit.iter().all(|name| submit.contains(name)), "a change is read like a submit");
}

#[test]
#[cfg(debug_assertions)]
fn a_field_that_the_server_ignores_is_noticed() {
    let ignored = std::panic::catch_unwind(|| {
        let object = Fields::default().object::<Wire>(field("{}")).unwrap();
        object.field("a").is_given()
    });
    assert!(ignored.is_err());
}

fn errors(fields: Fields) -> Vec<String> {
    fields.errors.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
}

#[test]
fn fields_are_found_wherever_they_stand() {
    let mut fields = Fields::default();
    let body = field(r#" {"b": [1], "a": null, "twoWords": {"b": 2}} "#);
    let object = fields.object::<Wire>(body).unwrap();
    assert!(!object.field("a").is_given() && !object.field("type").is_given());
    assert!(object.field_or_null("a").is_given() && !object.field_or_null("type").is_given());
    let text = |name| object.field(name).value.unwrap().get();
    assert_eq!((text("b"), text("twoWords")), ("[1]", r#"{"b": 2}"#));
    assert_eq!(object.field("twoWords").at.to_string(), "/twoWords");
    assert_eq!(fields.end(Some(7)).unwrap(), 7);
}

#[test]
fn names_are_known_and_given_once() {
    let mut fields = Fields::default();
    let body = field(r#"{"a":null,"x/~":1,"\u0061":2}"#);
    let items = Pointer::Root;
    let items = items.field("items");
    let item = Field { at: items.item(3), ..body };
    assert!(ask_for_all(fields.object::<Wire>(item)));
    assert_eq!(errors(fields), ["/items/3/x~1~0 UNKNOWN_FIELD", "/items/3/a DUPLICATE_FIELD"]);
    let mut fields = Fields::default();
    let half = field(r#"{"\ud800":1}"#);
    assert!(ask_for_all(fields.object::<Wire>(half)));
    assert!(fields.object::<Wire>(field("[]")).is_none());
    assert_eq!(errors(fields), [" INVALID_UNICODE", " WRONG_TYPE"]);
    let strict = Fields::default().strict_object::<Wire>(half, "a task").unwrap_err();
    assert_eq!(strict.code(), crate::error::Code::MalformedJson);
}

#[test]
fn lists_have_a_limit() {
    let mut fields = Fields::default();
    assert_eq!(fields.list(field("[1,2]"), 2).len(), 2);
    assert_eq!(fields.list(ABSENT, 2).len(), 0);
    assert!(fields.errors.is_empty());
    assert_eq!(fields.list(field("[1,2,[3],{}]"), 2).len(), 2);
    fields.list(field("{}"), 2);
    fields.filled_list(field("[]"), 2);
    fields.filled_list(field("7"), 2);
    fields.filled_list(ABSENT, 2);
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
        assert_eq!(fields.whole(field(text), 1..=EXACT), number, "{text}");
        assert_eq!(fields.errors.len(), usize::from(number.is_none()), "{text}");
    }
}

#[test]
fn seconds_keep_their_range() {
    let most = Duration::from_secs(60);
    for (text, millis) in
        [("0", Some(0)), ("1.5", Some(1500)), ("60", Some(60_000)), ("60.1", None), ("-1", None)]
    {
        let found = Fields::default().seconds(field(text), most);
        assert_eq!(found, millis.map(Duration::from_millis), "{text}");
    }
}

#[test]
fn ids_and_flags_are_read_as_they_are_written() {
    let mut fields = Fields::default();
    let id = "01920000-0000-7000-8000-000000000000";
    for text in [format!("\"{id}\""), format!("\"\\u0030{}\"", &id[1..])] {
        let read: Option<duly_core::id::TaskId> = fields.id(field(&text));
        assert_eq!(read.unwrap().to_string(), id);
    }
    assert_eq!(fields.flag(field("true")), Some(true));
    for text in ["\"x\"", "7"] {
        let read: Option<duly_core::id::TaskId> = fields.id(field(text));
        assert!(read.is_none());
    }
    fields.flag(field("1"));
    assert_eq!(errors(fields), [" INVALID_ID", " WRONG_TYPE", " WRONG_TYPE"]);
}

#[test]
fn the_list_of_errors_is_bounded() {
    let mut fields = Fields::default();
    for at in 0..ERRORS + 5 {
        fields.refuse(Pointer::Root.item(at), "REQUIRED", "is required");
    }
    let refused = fields.end(Some(())).unwrap_err();
    assert_eq!(refused.errors().len(), ERRORS);
    assert_eq!(refused.problem(None).detail, "/0: is required (and 24 more)");
}
