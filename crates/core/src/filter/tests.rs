use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::event::{Event, EventKind, Kinds};
use crate::name::{Lane, TenantName};

const NOW: &str = "2030-01-31T08:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn parse(text: &str) -> Result<Filter, BadFilter> {
    Filter::parse(text, at(NOW))
}

fn label(key: &str, value: &str) -> Filter {
    Filter { labels: [(key.to_owned(), value.to_owned())].into(), ..Filter::default() }
}

fn error(text: &str) -> Filter {
    Filter { error: Some(text.to_owned()), ..Filter::default() }
}

#[test]
fn no_term_asks_for_everything() {
    for text in ["", "   ", "\t\n"] {
        assert_eq!(parse(text), Ok(Filter::default()), "{text:?}");
    }
}

#[test]
fn all_terms_hold_together() {
    let text = " queue:mail  type:email.send group:0123456789abcdef since:24h label.customer:42 \
                until:2030-01-31T07:00:00Z status:FAILED,CANCELLED status:FAILED \
                label.region:eu error:\"timed out\"\tworker:host-7 \
                workflow:01920000-0000-7000-8000-000000000000";
    let wanted = Filter {
        statuses: [Status::Failed, Status::Cancelled].into(),
        queue: Some(QueueName::new("mail").unwrap()),
        task_type: Some(TypeName::new("email.send").unwrap()),
        labels: [("customer".to_owned(), "42".to_owned()), ("region".to_owned(), "eu".to_owned())]
            .into(),
        since: Some(at("2030-01-30T08:00:00Z")),
        until: Some(at("2030-01-31T07:00:00Z")),
        error: Some("timed out".to_owned()),
        group: Some("0123456789abcdef".parse().unwrap()),
        worker: Some("host-7".to_owned()),
        workflow: Some("01920000-0000-7000-8000-000000000000".parse().unwrap()),
    };
    assert_eq!(parse(text), Ok(wanted.clone()));
    assert_eq!(
        wanted.to_string(),
        "status:FAILED,CANCELLED queue:mail type:email.send label.customer:42 label.region:eu \
         since:2030-01-30T08:00:00.000Z until:2030-01-31T07:00:00.000Z error:\"timed out\" \
         group:0123456789abcdef worker:host-7 \
         workflow:01920000-0000-7000-8000-000000000000"
    );
}

#[test]
fn quotes_keep_a_value_together() {
    for (text, wanted) in [
        (r#"error:"a b""#, error("a b")),
        (r#"error:"say \"hi\" \\o/""#, error(r#"say "hi" \o/"#)),
        (r#"error:"status:FAILED""#, error("status:FAILED")),
        (r"error:\o/", error(r"\o/")),
        (r#"label.a:"""#, label("a", "")),
        (r"label.a:b:c", label("a", "b:c")),
        (r#"label."a b: c":d"#, label("a b: c", "d")),
        (r#"label."a\"b":"c d""#, label("a\"b", "c d")),
        (r"label.a.b:c", label("a.b", "c")),
    ] {
        assert_eq!(parse(text), Ok(wanted.clone()), "{text}");
        assert_eq!(parse(&wanted.to_string()), Ok(wanted), "{text}");
    }
}

#[test]
fn times_ago_are_read_as_people_write_them() {
    for (text, instant) in [
        ("90s", "2030-01-31T07:58:30Z"),
        ("1h30m", "2030-01-31T06:30:00Z"),
        ("PT24H", "2030-01-30T08:00:00Z"),
        ("P1D", "2030-01-30T08:00:00Z"),
        ("7d", "2030-01-24T08:00:00Z"),
        ("2w", "2030-01-17T08:00:00Z"),
        ("0s", NOW),
        ("1000000h", "1970-01-01T00:00:00Z"),
        ("2030-01-31T09:00:00+02:00", "2030-01-31T07:00:00Z"),
        ("\"1h 30m\"", "2030-01-31T06:30:00Z"),
    ] {
        let filter = parse(&format!("since:{text}")).unwrap();
        assert_eq!(filter.since, Some(at(instant)), "{text}");
    }
}

#[test]
fn an_error_names_the_place_the_term_and_what_is_allowed() {
    let long = "x".repeat(FILTER_CHARS + 1);
    for (text, place, wanted) in [
        ("mail", 0, "`mail` at byte 0 is not of the form key:value; keys are status, queue, type,"),
        ("queue:a  color:red", 9, "`color:red` at byte 9 has no known key; keys are status,"),
        ("Queue:a", 0, "`Queue:a` at byte 0 has no known key"),
        ("label:a", 0, "no known key; keys are status, queue, type, label.KEY,"),
        ("label.KEY:a label.KEY:a", 12, "label.KEY is given twice"),
        ("queue:a queue:b", 8, "`queue:b` at byte 8: queue is given twice"),
        ("label.a:1 label.\"a\":2", 10, "is given twice"),
        ("queue:", 0, "`queue:` at byte 0: queue takes a name"),
        ("type:!", 0, "type takes a name"),
        ("group:12", 0, "group takes an error group"),
        ("since:soon", 0, "since takes a time ago such as 24h"),
        ("since:-1h", 0, "since takes"),
        ("until:1mo", 0, "until takes"),
        ("until:", 0, "until takes"),
        ("status:faild", 0, "status takes BLOCKED, PENDING,"),
        ("status:FAILED,", 0, "status takes"),
        ("status:", 0, "status takes"),
        ("error:", 0, "error takes a part"),
        ("error:\"\"", 0, "error takes a part"),
        ("worker:", 0, "worker takes the name"),
        ("label.a:", 0, "takes the label's value, in quotes if it is empty"),
        ("label.:a", 0, "label.KEY takes"),
        ("error:ä ä:ö", 9, "`ä:ö` at byte 9 has no known key"),
        ("error:\"a b", 0, "`error:\"a b` at byte 0: quotation marks stand around"),
        ("error:a\"b\"", 0, "quotation marks"),
        ("error:\"a\"b", 0, "quotation marks"),
        ("error:\"a\\n\"", 0, "quotation marks"),
        ("\"queue:a\"", 0, "at byte 0"),
        ("label.\"a\"b:c", 0, "quotation marks"),
        (&long, FILTER_CHARS, "at most 1000 characters"),
        (&long[..200], 0, "x…` at byte 0 is not"),
    ] {
        let bad = parse(text).unwrap_err();
        assert_eq!(bad.at, place, "{text}");
        assert!(bad.to_string().contains(wanted), "{text}: {bad}");
    }
}

#[test]
fn dead_letters_are_failed_and_nothing_else() {
    let parse = |text| Filter::parse_dead(text, at(NOW));
    assert_eq!(parse("status:FAILED"), Ok(Filter::default()));
    assert_eq!(parse("queue:mail").unwrap().queue, Some(QueueName::new("mail").unwrap()));
    for text in ["status:PENDING", "status:FAILED,CANCELLED", "queue:a status:SUCCESS"] {
        let bad = parse(text).unwrap_err().to_string();
        assert!(bad.contains("status takes only FAILED here"), "{text}: {bad}");
    }
}

#[test]
fn states_are_read_in_upper_and_lower_case() {
    let filter = parse("status:failed,Cancelled status:RUNNING").unwrap();
    assert_eq!(filter.statuses, [Status::Running, Status::Failed, Status::Cancelled].into());
    assert_eq!(filter.to_string(), "status:RUNNING,FAILED,CANCELLED");
}

#[test]
fn since_and_until_are_a_range_of_ids() {
    let due = at(NOW);
    let ids = [TaskId::mint(due, 0, 0), TaskId::mint(due, u32::MAX, u64::MAX)];
    let range = |since, until| Filter { since, until, ..Filter::default() }.ids();
    let next = Timestamp::from_millis(due.millis() + 1);
    for id in ids {
        assert!(range(None, None).contains(&id));
        assert!(range(Some(due), Some(next)).contains(&id));
        assert!(!range(Some(next), None).contains(&id));
        assert!(!range(None, Some(due)).contains(&id));
    }
}

#[test]
fn an_error_is_found_by_a_part_of_its_code_or_message() {
    let failure = Failure::new("SMTP_ERROR", "Über 9000 Verbindungen");
    for text in ["smtp", "ERROR", "über", "9000 VERB", "SMTP_ERROR"] {
        assert!(says(&failure, text), "{text}");
    }
    for text in ["timeout", "ERRORÜber", "9001"] {
        assert!(!says(&failure, text), "{text}");
    }
}

fn filters() -> impl Strategy<Value = Filter> {
    let name = "[A-Za-z0-9][A-Za-z0-9._-]{0,9}";
    let instant = || option::of((0..=253_402_300_799_999_i64).prop_map(Timestamp::from_millis));
    let text = || "\\PC{1,20}|[ \"\\\\:a\t\n]{1,10}";
    let lane = (option::of(name), option::of(name));
    let workflow = option::of(any::<u128>());
    let rest = (option::of(text()), option::of(any::<i64>()), option::of(text()), workflow);
    let labels = btree_map(text(), prop_oneof![text(), Just(String::new())], 0..4);
    let statuses = btree_set(select(&Status::ALL[..]), 0..=6);
    (statuses, lane, labels, (instant(), instant()), rest).prop_map(
        |(
            statuses,
            (queue, task_type),
            labels,
            (since, until),
            (error, group, worker, workflow),
        )| Filter {
            statuses,
            queue: queue.map(|name| QueueName::new(&name).unwrap()),
            task_type: task_type.map(|name| TypeName::new(&name).unwrap()),
            labels,
            since,
            until,
            error,
            group: group.map(ErrorGroup::from_bits),
            worker,
            workflow: workflow.map(|bytes| WorkflowId::from_bytes(bytes.to_be_bytes())),
        },
    )
}

proptest! {
    #[test]
    fn a_filter_survives_its_text(filter in filters()) {
        prop_assert_eq!(Filter::parse(&filter.to_string(), Timestamp::EPOCH), Ok(filter));
    }

    #[test]
    fn s21_any_text_is_read_or_refused(text in ".{0,200}", now in any::<i64>()) {
        Filter::parse(&text, Timestamp::clamped(now)).ok();
    }

    #[test]
    fn any_term_is_read_or_refused_and_what_is_read_survives(
        text in "((status|queue|type|label\\.|since|until|error|group|worker|\")[-+0-9a-zA-Z.:\"\\\\ ]{0,20} ?){0,4}",
    ) {
        if let Ok(filter) = Filter::parse(&text, at(NOW)) {
            prop_assert_eq!(parse(&filter.to_string()), Ok(filter));
        }
    }
}

#[test]
fn a_filter_of_events_names_kinds_and_tasks() {
    let parse = |text: &str| EventFilter::parse(text, at(NOW));
    let kinds = |names: &[EventKind]| Some(names.iter().copied().collect::<Kinds>());
    assert_eq!(parse("  "), Ok(EventFilter::default()));
    let both = parse("queue:mail event:task.failed,task.lost status:FAILED").unwrap();
    assert_eq!(both.kinds, kinds(&[EventKind::TaskFailed, EventKind::TaskLost]));
    assert_eq!(both.task, super::tests::parse("queue:mail status:FAILED").unwrap());
    let all = parse("event:workflow.* event:leader.changed").unwrap();
    let expected = [EventKind::WorkflowStarted, EventKind::WorkflowEnded, EventKind::LeaderChanged];
    assert_eq!(all.kinds, kinds(&expected));
    for (text, place) in
        [("event:task", 0), ("queue:a event:task.failed,x", 8), ("event:x.*", 0), ("event:* a", 0)]
    {
        assert_eq!(parse(text).unwrap_err().at, place, "{text}");
    }
    assert_eq!(parse("event:task.lost colour:red").unwrap_err().at, 16);
}

#[test]
fn events_are_judged_by_their_place_and_their_task() {
    let lane = Lane {
        tenant: TenantName::default_tenant(),
        queue: QueueName::new("mail").unwrap(),
        task_type: TypeName::new("email").unwrap(),
    };
    let id = TaskId::mint(at(NOW), 1, 1);
    let failed = Event::of_task(EventKind::TaskFailed, &lane, (id, 1, 1), at(NOW));
    let settings = Event::settings_changed(2, at(NOW));
    let means =
        |text: &str, event: &Event| EventFilter::parse(text, at(NOW)).unwrap().matches(event, None);
    assert!(means("", &failed) && means("", &settings));
    assert!(means("queue:mail type:email event:task.failed", &failed));
    for text in ["queue:other", "type:other", "event:task.lost", "status:FAILED"] {
        assert!(!means(text, &failed), "{text}: the task is gone");
    }
    assert!(means("event:settings.changed", &settings) && !means("queue:mail", &settings));
}
