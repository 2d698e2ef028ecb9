use super::*;

fn lease() -> Lease {
    Lease {
        task: TaskId::mint(Timestamp::from_millis(1_900_000_000_000), 1, 2),
        epoch: 3,
        run: 2,
        attempt: 4,
        retries: 5,
        lane: Lane {
            tenant: TenantName::new("acme").unwrap(),
            queue: QueueName::new("mail").unwrap(),
            task_type: TypeName::new("email").unwrap(),
        },
        timeout: Some(Duration::from_millis(1_234_567)),
        granted_at: Timestamp::from_millis(1_900_000_000_007),
        run_at: Timestamp::from_millis(1_900_000_000_001),
        payload: r#"{"b": 123456789012345678901234567890, "a":1.0e2}"#.into(),
        has_parents: false,
        has_children: false,
        renders: false,
        parents: None,
    }
}

#[test]
fn a_lease_survives_the_way() {
    let answer =
        ClaimAnswer { seq: 7, leases: vec![(&lease()).into()], lost: vec![], cancel: vec![] };
    let text = serde_json::to_vec(&answer).unwrap();
    let read: ClaimAnswer = serde_json::from_slice(&text).unwrap();
    assert_eq!(read, answer);
    let view = read.leases.into_iter().next().unwrap();
    assert_eq!(view.deadline, lease().deadline());
    assert_eq!(view.idempotency_key, lease().idempotency_key());
    assert_eq!(Lease::from(view), lease());
}

#[test]
fn a_damaged_payload_does_not_break_its_batch() {
    let damaged = Lease { payload: "{oops".into(), ..lease() };
    let text = serde_json::to_string(&LeaseView::from(&damaged)).unwrap();
    let read: LeaseView = serde_json::from_str(&text).unwrap();
    assert_eq!(&*read.task.payload, r#""{oops""#);
}

#[test]
fn a_lease_without_a_limit_or_a_tenant_is_read() {
    let text = r#"{"task":{"taskId":"01920000-0000-7000-8000-000000000000","type":"email",
        "queue":"default","run":1,"attempt":1,"retries":3,"runAt":"2030-01-31T08:01:00.000Z",
        "leasedAt":"2030-01-31T08:01:00.003Z","payload":null},"epoch":1,
        "deadline":"2030-01-31T08:31:10.003Z","idempotencyKey":"x"}"#;
    let lease = Lease::from(serde_json::from_str::<LeaseView>(text).unwrap());
    assert_eq!((lease.timeout, lease.lane.tenant.as_str()), (None, "default"));
    assert_eq!(&*lease.payload, "null");
}

#[test]
fn seconds_keep_milliseconds() {
    for millis in [0, 1, 999, 1_001, 86_399_999] {
        let exact = Duration::from_millis(millis);
        assert_eq!(duration(seconds(exact)), Some(exact));
    }
    assert_eq!(duration(-1.0), None);
    assert_eq!(duration(f64::NAN), None);
}
