//! A server, or what stands before it, that takes less at once or asks to wait.

use std::time::Duration;

use anyhow::Context as _;

use super::front::Front;
use super::{World, lines, numbers, plain};

/// Says no to bodies above 8 KiB as a proxy does, in words that are not Duly's.
fn small_bodies(body: &[u8], _: usize) -> Option<String> {
    let answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 10\r\n\r\n<p>no</p>\n";
    (body.len() > 8 * 1024).then(|| answer.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_too_large_is_sent_in_parts() -> anyhow::Result<()> {
    let world = World::start().await?;
    let front = Front::start(world.server.url(), small_bodies).await?;
    let culprit = format!("{{\"type\":\"echo\",\"payload\":\"{}\"}}\n", "x".repeat(20 * 1024));
    let text = format!("{}{culprit}{}", lines(0..700), lines(700..1500));
    let file = world.file("tasks.ndjson", &text)?;
    let ended = world.import_to(front.url(), &file, &[]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.line()?, "imported 1500 tasks, rejected 1 line");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..1500));
    let list = std::fs::read_to_string(world.folder.path().join("tasks.ndjson.rejected"))?;
    let entry: serde_json::Value = serde_json::from_str(list.trim())?;
    assert_eq!(
        (&entry["line"], &entry["problem"]["code"]),
        (&701.into(), &"BODY_TOO_LARGE".into())
    );
    let detail = entry["problem"]["detail"].as_str().context("no detail")?;
    assert!(detail.contains("413"), "{detail}");
    let requests = front.asked().len();
    assert!((10..200).contains(&requests), "halves, not single tasks: {requests}");
    Ok(())
}

/// Asks the first two requests to wait.
fn busy_at_first(_: &[u8], before: usize) -> Option<String> {
    let body = concat!(
        r#"{"type":"urn:duly:error:OVERLOADED","title":"t","status":429,"code":"OVERLOADED","#,
        r#""detail":"too much to do"}"#
    );
    let length = body.len();
    (before < 2).then(|| {
        format!("HTTP/1.1 429 Busy\r\nretry-after: 1\r\ncontent-length: {length}\r\n\r\n{body}")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_to_wait_is_given_the_time() -> anyhow::Result<()> {
    let world = World::start().await?;
    let front = Front::start(world.server.url(), busy_at_first).await?;
    let file = world.file("tasks.ndjson", &lines(0..10))?;
    let ended = world.import_to(front.url(), &file, &[]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.matches("too much to do").count(), 1, "once: {ended:?}");
    assert!(ended.stderr.contains("retrying until it works"), "{ended:?}");
    let asked = front.asked();
    assert_eq!(asked.len(), 3, "{}", plain(&file));
    for pair in asked.windows(2) {
        let waited = pair[1].duration_since(pair[0]);
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
    }
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..10));
    Ok(())
}
