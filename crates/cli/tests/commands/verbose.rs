//! `-v`: the log says what becomes of each task.

use std::path::Path;

use duly_core::time::Timestamp;
use duly_testkit::Server;

use crate::{DULY, World};

/// The lines about one task, each of which must begin with the time and name the task.
fn lines_about<'a>(said: &'a str, id: &str, task_type: &str, queue: &str) -> Vec<&'a str> {
    let task = format!(" task.id={id} task.type={task_type} task.queue={queue} task.attempt=");
    let lines: Vec<_> = said.lines().filter(|line| line.contains(id)).collect();
    for line in &lines {
        let (at, rest) = line.split_once(' ').unwrap_or_default();
        assert!(Timestamp::parse(at).is_ok() && rest.trim_start().starts_with("INFO"), "{line}");
        assert!(line.contains(&task), "{line}");
    }
    lines
}

/// The number after a name such as `duration_ms=`.
fn number(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    rest.split(' ').next()?.parse().ok()
}

/// What happened in each attempt: its number and the words of its line. The end of an attempt has
/// a duration, its start has none.
fn story(lines: &[&str]) -> Vec<(Option<u64>, &'static str)> {
    let words =
        ["task started ", "task completed ", "task failed, and is retried ", "task failed "];
    let tell = |line: &&str| {
        let found = words.iter().find(|words| line.contains(&format!(": {words}task.id")));
        let words = found.map_or("", |words| words.trim_end());
        assert_eq!(number(line, " duration_ms=").is_some(), words != "task started", "{line}");
        (number(line, " task.attempt="), words)
    };
    lines.iter().map(tell).collect()
}

#[tokio::test]
async fn the_log_tells_the_story_of_each_task() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["-v"]).await?;
    let world = World { server, data };
    let run = ["task", "run", "sleep", "-d", r#"{"seconds":0.02}"#, "--queue", "mail"];
    let ended = world.duly(&[&run[..], &["--wait", "-o", "id"]].concat()).await?;
    let completed = ended.line()?.to_owned();
    let run = ["task", "run", "flaky", "-d", r#"{"failTimes":1}"#, "--backoff", "none"];
    let ended = world.duly(&[&run[..], &["--wait", "-o", "id"]].concat()).await?;
    let retried = ended.line()?.to_owned();
    let failed = world.failed().await?;

    let (_, said) = world.server.interrupt().await?;
    let lines = lines_about(&said, &completed, "sleep", "mail");
    let expected = [(Some(1), "task started"), (Some(1), "task completed")];
    assert_eq!(story(&lines), expected, "{said}");
    assert!(number(lines[1], " duration_ms=") >= Some(20), "{}", lines[1]);
    let lines = lines_about(&said, &retried, "flaky", "default");
    let expected = [
        (Some(1), "task started"),
        (Some(1), "task failed, and is retried"),
        (Some(2), "task started"),
        (Some(2), "task completed"),
    ];
    assert_eq!(story(&lines), expected, "{said}");
    assert!(lines[1].contains(" error=FLAKY: "), "{}", lines[1]);
    let lines = lines_about(&said, &failed, "flaky", "default");
    let expected = [(Some(1), "task started"), (Some(1), "task failed")];
    assert_eq!(story(&lines), expected, "{said}");
    assert!(lines[1].contains(" error=FLAKY: "), "{}", lines[1]);
    Ok(())
}

#[tokio::test]
async fn the_log_does_not_tell_it_unless_asked() -> anyhow::Result<()> {
    let world = World::start().await?;
    let id = world.failed().await?;
    let (_, said) = world.server.interrupt().await?;
    assert!(!said.contains(&id), "{said}");
    Ok(())
}
