//! What a tenant sets for itself holds for tasks that applications submit, and so do its quotas.

use duly_client::wire::{Backoff, QuotasView, TenantRequest, TenantSettingsView};
use duly_core::redact::Redaction;

use super::refusals::refusal;
use super::world::{App, World};

async fn limit(world: &World, tenant: &str, quotas: QuotasView) {
    let request = TenantRequest { quotas: Some(quotas), ..TenantRequest::default() };
    world.rest.put_tenant(tenant, &request, None).await.unwrap();
}

async fn set(world: &World, tenant: &str, settings: TenantSettingsView) {
    let request = TenantRequest { settings: Some(settings), ..TenantRequest::default() };
    world.rest.put_tenant(tenant, &request, None).await.unwrap();
}

fn refused(code: &str, column: &str, name: &str) -> (String, String, String) {
    (code.to_owned(), column.to_owned(), name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_tasks_wait_as_the_quota_allows() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    limit(&world, "acme", QuotasView { waiting_tasks: Some(2), ..QuotasView::default() }).await;
    let full = refused("53400", "tenant", "QUOTA_EXCEEDED");
    let first = app.submit("'email', tenant => 'acme', idempotency_key => 'k'").await.unwrap();
    app.batch_execute("BEGIN").await.unwrap();
    app.submit("'sms', tenant => 'acme', delay => '1 day'").await.unwrap();
    assert_eq!(refusal(&app, "'email', tenant => 'acme'").await, full, "its own count too");
    app.batch_execute("ROLLBACK").await.unwrap();
    app.submit("'email', tenant => 'acme'").await.unwrap();
    assert_eq!(refusal(&app, "'email', tenant => 'acme'").await, full);
    let again = app.submit("'email', tenant => 'acme', idempotency_key => 'k'").await.unwrap();
    assert_eq!(again, first, "a repeated submit adds nothing");
    for _ in 0..3 {
        app.submit("'email'").await.unwrap();
    }
    let started = format!("DELETE FROM duly.due WHERE task = '{first}'");
    app.batch_execute(&started).await.unwrap();
    app.submit("'email', tenant => 'acme'").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_nothing_lets_nothing_pass() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let full = refused("53400", "tenant", "QUOTA_EXCEEDED");
    for quotas in [
        QuotasView { waiting_tasks: Some(0), ..QuotasView::default() },
        QuotasView { submits_per_second: Some(0), ..QuotasView::default() },
    ] {
        limit(&world, "acme", quotas).await;
        assert_eq!(refusal(&app, "'email', tenant => 'acme'").await, full, "{quotas:?}");
    }
    limit(&world, "acme", QuotasView { submits_per_second: Some(1), ..QuotasView::default() })
        .await;
    for _ in 0..3 {
        app.submit("'email', tenant => 'acme'").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_as_large_as_the_quota_allows() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    limit(&world, "acme", QuotasView { payload_bytes: Some(4), ..QuotasView::default() }).await;
    app.submit(r#"'email', '"é"', tenant => 'acme'"#).await.unwrap();
    let large = refusal(&app, r#"'email', '"éa"', tenant => 'acme'"#).await;
    assert_eq!(large, refused("22023", "payload", "QUOTA_EXCEEDED"));
    app.submit(r#"'email', '"éa"'"#).await.unwrap();
}

/// Retries and back-off of the newest task.
const RULES: &str = "SELECT concat(retries, ' ', back_off) FROM duly.task ORDER BY created_at DESC,
    id DESC LIMIT 1";

async fn rules(app: &App, arguments: &str) -> String {
    app.submit(arguments).await.unwrap();
    app.text(RULES).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_does_not_say_is_as_its_tenant_says() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let installation = r#"INSERT INTO duly.settings (version, changed_at, body) VALUES (1, 0,
        '{"retries":7,"back_off":{"strategy":"linear","base":{"secs":2,"nanos":0},"factor":3.0,
          "cap":{"secs":60,"nanos":0},"jitter":"none"}}')"#;
    app.batch_execute(installation).await.unwrap();
    set(&world, "acme", TenantSettingsView { retries: Some(9), ..Default::default() }).await;
    let fixed = Backoff {
        strategy: Some("fixed".to_owned()),
        base_seconds: Some(5.0),
        ..Backoff::default()
    };
    set(&world, "beta", TenantSettingsView { backoff: Some(fixed), ..Default::default() }).await;
    let linear = r#"backoff => '{"strategy":"linear","baseSeconds":2,"factor":3,"capSeconds":60,
        "jitter":"none"}'"#;
    let fixed = r#"backoff => '{"strategy":"fixed","baseSeconds":5,"factor":2,"capSeconds":3600,
        "jitter":"full"}'"#;
    for (tenant, said) in [
        ("other", format!("retries => 7, {linear}")),
        ("acme", format!("retries => 9, {linear}")),
        ("beta", format!("retries => 7, {fixed}")),
    ] {
        let silent = rules(&app, &format!("'email', tenant => '{tenant}'")).await;
        assert_eq!(silent, rules(&app, &format!("'email', {said}")).await, "{tenant}");
    }
    let own = rules(&app, "'email', tenant => 'acme', retries => 1").await;
    assert!(own.starts_with("1 "), "what it says counts: {own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_was_read_masked_is_refused() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let payloads = [
        r#"{"card":{"number":"***"}}"#,
        r#"{"card":{"number":"\u002a**"}}"#,
        r#"{"card":{"number":"****","other":"***"}}"#,
        r#"{"card":{"number":"4111","number":"***"}}"#,
        r#"{"card":"***"}"#,
        r#"{"list":["a",{"x":["***"]}]}"#,
        r#"{"list":{"1":{"x":"***"}}}"#,
        r#"["a",["***"]]"#,
        r#"{"a/b":{"~":"***"}}"#,
        r#"{"":{"":"***"}}"#,
        r#"{"note":"***"}"#,
        r#""***""#,
        "null",
        "17",
    ];
    let paths: [&[&str]; 8] = [
        &["/card/number"],
        &["/card", "/list/*/x/0"],
        &["/list/1/x", "/list/1/x/*"],
        &["/*/*"],
        &["/1/0"],
        &["/a~1b/~0"],
        &["//"],
        &[],
    ];
    let mut seen = [0, 0];
    for (number, paths) in paths.into_iter().enumerate() {
        let tenant = format!("tenant-{number}");
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        let redaction = Redaction::new(&paths);
        set(&world, &tenant, TenantSettingsView { redact: Some(paths), ..Default::default() })
            .await;
        for payload in payloads {
            let expected = redaction.holds_mask(payload);
            seen[usize::from(expected)] += 1;
            let arguments = format!("'email', '{payload}', tenant => '{tenant}'");
            if expected {
                let masked = refused("22023", "payload", "MASKED");
                assert_eq!(refusal(&app, &arguments).await, masked, "{redaction:?} {payload}");
            } else {
                app.submit(&arguments).await.unwrap();
            }
        }
    }
    assert!(seen.into_iter().all(|times| times > 8), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_installation_masks_for_tenants_that_say_nothing() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    let settings = r#"INSERT INTO duly.settings (version, changed_at, body)
        VALUES (1, 0, '{"redact":["/card"]}')"#;
    app.batch_execute(settings).await.unwrap();
    let none = TenantSettingsView { redact: Some(Vec::new()), ..Default::default() };
    set(&world, "acme", none).await;
    set(&world, "beta", TenantSettingsView { retries: Some(1), ..Default::default() }).await;
    let masked = r#"'email', '{"card":"***"}'"#;
    let code = refused("22023", "payload", "MASKED");
    assert_eq!(refusal(&app, masked).await, code);
    assert_eq!(refusal(&app, &format!("{masked}, tenant => 'beta'")).await, code);
    app.submit(&format!("{masked}, tenant => 'acme'")).await.unwrap();
}

/// Nodes leave such a record out as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_counts_as_none() {
    let Some(world) = World::start(1).await else { return };
    let app = world.connect().await;
    for (quotas, settings) in [
        ("{", "["),
        (r#"{"waiting_tasks":"x"}"#, r#"{"retries":"x","redact":7}"#),
        ("null", r#"{"back_off":{"strategy":"fixed"}}"#),
        ("7", r#"{"back_off":{"strategy":"slow"},"redact":{"a":1}}"#),
    ] {
        let record = format!(
            "INSERT INTO duly.tenant VALUES ('acme', 1, NULL, NULL, '{quotas}', '{settings}', 1)
             ON CONFLICT (name) DO UPDATE SET quotas = excluded.quotas, settings = excluded.settings"
        );
        app.batch_execute(&record).await.unwrap();
        let damaged = rules(&app, "'email', tenant => 'acme'").await;
        assert_eq!(damaged, rules(&app, "'email'").await, "{quotas} {settings}");
    }
}
