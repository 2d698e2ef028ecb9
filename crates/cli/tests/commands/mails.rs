//! Mails: the outbox of `duly dev`, the server of `duly serve`, and previews of templates.

use std::path::Path;

use anyhow::Context as _;
use duly_client::wire::{EditRequest, SubmitRequest, TaskView};
use duly_core::state::Status;
use duly_testkit::raw::Connection;
use duly_testkit::wait::PATIENCE;
use duly_testkit::{MailServer, Node};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::{DULY, World, run};

/// A task as documents show it.
const CLASSIC: &str = r#"{"type":"email","payload":{"to":"user@example.com","subject":"Welcome"},"delaySeconds":60,"retries":3,"dependencies":[]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_of_duly_dev_is_shown_by_the_outbox() -> anyhow::Result<()> {
    let world = World::start().await?;
    let data = world.data.path().to_str().context("an odd name")?;
    let empty = run(&["notify", "outbox", "--data", data, "-o", "id"]).await?;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{empty:?}");

    let mut connection = Connection::open(world.server.url()).await?;
    let answer = connection.post("/tasks", CLASSIC.as_bytes()).await?;
    assert_eq!(answer.status, 201, "{answer:?}");
    let task = answer.json();
    assert!(task["warnings"].as_array().is_none_or(Vec::is_empty), "{task}");
    let id = task["taskId"].as_str().context("an id")?.to_owned();
    let now = EditRequest { delay_seconds: Some(0.0), ..EditRequest::default() };
    world.server.client().edit_task(&id, &now).await?;
    let task = world.server.client().get_task(&id, Some(PATIENCE)).await?;
    assert_eq!(task.status, Status::Success, "{:?}", task.error);

    let listed = run(&["notify", "outbox", "--data", data]).await?;
    assert!(listed.stdout.contains("user@example.com"), "{listed:?}");
    let key = format!("{id}-1");
    assert!(listed.stderr.contains(&format!("next: duly notify outbox {key}")), "{listed:?}");
    let shown = run(&["notify", "outbox", &key, "--data", data]).await?;
    let expected = format!(
        "From: Duly <duly@localhost>\nTo: user@example.com\nSubject: Welcome\nMessage-ID: <{key}@localhost>\n"
    );
    assert_eq!(shown.stdout, expected);
    let shown = run(&["notify", "outbox", &id[..13], "--data", data, "-o", "json"]).await?;
    assert_eq!(shown.json()?["subject"], "Welcome");
    let absent = run(&["notify", "outbox", "none", "--data", data]).await?;
    assert_eq!(absent.code, Some(3), "{absent:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_previewed() -> anyhow::Result<()> {
    let data = r#"{"product": "<Duly>", "name": "Ada"}"#;
    let shown = run(&["notify", "preview", "welcome", "--data", data]).await?;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["Subject: Welcome to <Duly>", "Hello Ada,", "<p>welcome to &lt;Duly&gt;.</p>"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("bill.txt"), "Bill {{ number }}")?;
    let own = folder.path().to_str().context("an odd name")?;
    let line = ["notify", "preview", "bill", "--templates", own, "--json"];
    let shown = run(&[&line[..], &["--data", r#"{"number": 7}"#]].concat()).await?;
    assert_eq!(shown.json()?, json!({"subject": null, "text": "Bill 7", "html": null}));
    for (rest, code, words) in [
        (["bill", "--data", "{}"], 1, "bill.txt"),
        (["none", "--data", "{}"], 1, "there are bill, notice, welcome"),
        (["bill", "--data", "[]"], 2, "must be a JSON object"),
    ] {
        let ended = run(&[&["notify", "preview", "--templates", own], &rest[..]].concat()).await?;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    Ok(())
}

fn mail(to: &str) -> anyhow::Result<SubmitRequest> {
    let payload = to_raw_value(&json!({"to": to, "subject": "Hello", "text": "words"}))?;
    Ok(SubmitRequest { payload: Some(payload), ..SubmitRequest::new("email") })
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_duly_serve_sends_by_its_server_and_never_shows_the_password() -> anyhow::Result<()> {
    let Some(mut server) = MailServer::start(&["--login"]).await? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let config = |password: &str| -> anyhow::Result<String> {
        std::fs::write(path(password), format!("{password}\n"))?;
        let smtp = format!(
            "{{host: 127.0.0.1, port: {}, tls: none, user: duly, passwordFile: {}, from: Duly <duly@example.com>}}",
            server.port(),
            path(password)
        );
        std::fs::write(path("duly.yaml"), format!("insecure: true\nsmtp: {smtp}\n"))?;
        Ok(path("duly.yaml"))
    };
    let store = format!("sqlite:{}", path("duly.db"));
    let start = async |config: String| {
        Node::start_with_keys(Path::new(DULY), "mailer", &store, &config, &["-vv"]).await
    };
    let node = start(config("wrong-canary")?).await?;
    let once = SubmitRequest { retries: Some(0), ..mail("ada@example.com")? };
    let refused = node.client.submit_and_wait(&once, PATIENCE).await?;
    let error = refused.error.context("no error")?;
    assert_eq!(error.code, "MAIL_LOGIN", "{error:?}");
    let logs = Connection::open(node.url()).await?;
    let shown = format!("{error:?} {}", attempts(logs, &refused.task_id.to_string()).await?);
    let (_, said) = node.terminate().await?;
    for text in [&shown, &said] {
        assert!(!text.contains("canary") && !text.contains("d3JvbmctY2FuYXJ5"), "{text}");
    }
    assert!(!said.contains("ada@example.com"), "{said}");

    let node = start(config("secret")?).await?;
    let sent: TaskView = node.client.submit_and_wait(&mail("ada@example.com")?, PATIENCE).await?;
    assert_eq!(sent.status, Status::Success, "{:?}", sent.error);
    let arrived: Value = server.mail().await?;
    assert_eq!(arrived["recipients"], json!(["ada@example.com"]));
    let id = arrived["headers"]["Message-ID"].as_str().context("an id")?.to_owned();
    assert_eq!(id, format!("<{}-1@example.com>", sent.task_id));
    node.kill().await
}

async fn attempts(mut connection: Connection, id: &str) -> anyhow::Result<String> {
    let attempts = connection.get(&format!("/tasks/{id}/attempts")).await?.body;
    Ok(attempts + &connection.get(&format!("/tasks/{id}/logs")).await?.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_submit_says_that_no_worker_sends_mails() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().join("duly.db").display());
    let node = Node::start(Path::new(DULY), "silent", &store, &[]).await?;
    let task = node.client.submit(&mail("ada@example.com")?).await?;
    let codes: Vec<_> = task.warnings.iter().map(|warning| warning.code.to_string()).collect();
    assert_eq!(codes, ["NO_WORKER_FOR_TYPE"]);
    node.kill().await
}
