use super::*;

fn queue(paused: Option<&str>) -> Option<View> {
    let (tenant, name) = (TenantName::default_tenant(), QueueName::default_queue());
    let pause = paused.map(|note| duly_core::ports::store::Pause {
        since: duly_core::time::Timestamp::from_millis(7),
        note: note.to_owned(),
    });
    Some(View::queue(&tenant, &name, pause.as_ref()))
}

fn subject() -> Subject {
    resume_queue(&TenantName::default_tenant(), &QueueName::default_queue()).remove(0)
}

#[test]
fn only_fields_that_differ_are_told() {
    let change = subject().change(queue(Some("why")), queue(Some("other")), 0).unwrap();
    assert_eq!(change.before.as_deref(), Some(r#"{"note":"why"}"#));
    assert_eq!(change.after.as_deref(), Some(r#"{"note":"other"}"#));
    assert_eq!(change.target, "default");
}

#[test]
fn an_object_that_stays_as_it_was_is_no_change() {
    assert_eq!(subject().change(queue(Some("why")), queue(Some("why")), 0), None);
    assert_eq!(subject().change(None, None, 0), None);
}

#[test]
fn all_is_told_of_an_object_that_is_gone() {
    let change = subject().change(queue(Some("why")), None, 0).unwrap();
    assert_eq!(change.before.as_deref(), Some(r#"{"note":"why","paused":true}"#));
    assert_eq!(change.after, None);
}
