//! What a person sees on a terminal of a certain width, and in which colours.

use duly_testkit::command::{self, Ended};
use duly_testkit::terminal;

use crate::{DULY, World};

const WIDTHS: [(&str, usize); 2] = [("80", 80), ("120", 120)];

/// Every line fits, and every id stands on one line.
fn assert_fits(ended: &Ended, width: usize, ids: &[String]) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= width, "{width}: {line:?}\n{}", ended.stdout);
    }
    for id in ids {
        assert!(ended.stdout.lines().any(|line| line.contains(id)), "{id}:\n{}", ended.stdout);
    }
}

/// A schedule with a run and a slot that was skipped, and the id of the run.
async fn scheduled(world: &World) -> anyhow::Result<(String, String)> {
    let name = "a-schedule-with-a-name-of-some-length";
    let create = ["schedule", "create", name, "--cron", "0 18 LW * *", "--note"];
    let more = ["a note of some length, for people", "--type", "sleep", "-d", r#"{"seconds":60}"#];
    world.duly(&[&create[..], &more].concat()).await?;
    let trigger = ["schedule", "trigger", name, "-o", "id"];
    let run = world.duly(&trigger).await?.line()?.to_owned();
    let skipped = world.duly(&trigger).await?;
    assert!(skipped.stdout.is_empty() && skipped.stderr.contains("nothing was"), "{skipped:?}");
    Ok((name.to_owned(), run))
}

#[tokio::test]
async fn tables_fit_the_terminal_and_keep_ids_whole() -> anyhow::Result<()> {
    let world = World::start().await?;
    let failed = world.failed().await?;
    let long = ["task", "run", "a-type-with-a-name-of-some-length", "--queue"];
    let more = ["a-queue-with-a-name-of-some-length", "-o", "id"];
    let waiting = world.duly(&[&long[..], &more].concat()).await?.line()?.to_owned();
    let ended = world.duly(&["bulk", "cancel", "queue:none", "-o", "id"]).await?;
    let bulk = ended.line()?.to_owned();
    let (tasks, dead) = ([failed.clone(), waiting.clone()], [failed.clone()]);
    let ended = world.duly(&["dlq", "groups", "-o", "id"]).await?;
    let groups = [ended.line()?.to_owned()];
    let ended = world.duly(&["node", "list", "-o", "id"]).await?;
    let nodes = [ended.line()?.to_owned()];
    let ended = world.duly(&["worker", "list", "-o", "id"]).await?;
    let workers = [ended.line()?.to_owned()];
    let (schedule, run) = scheduled(&world).await?;
    for (columns, width) in WIDTHS {
        for (command, ids) in [
            (&["schedule", "list"][..], std::slice::from_ref(&schedule)),
            (&["schedule", "get", &schedule], &[]),
            (&["schedule", "runs", &schedule], std::slice::from_ref(&run)),
            (&["task", "list"], &tasks[..]),
            (&["dlq", "list"], &dead),
            (&["dlq", "groups"], &groups),
            (&["audit"], std::slice::from_ref(&bulk)),
            (&["bulk", "list"], std::slice::from_ref(&bulk)),
            (&["node", "list"], &nodes),
            (&["worker", "list"], &workers),
            (&["task", "get", &failed], &dead),
            (&["task", "get", &failed, &waiting], &tasks),
            (&["task", "attempts", &failed], &[]),
            (&["queue", "list"], &["a-queue-with-a-name-of-some-length".to_owned()]),
            (&["settings", "get"], &[]),
        ] {
            let ended = world.duly_with(&[("COLUMNS", columns)], command).await?;
            assert_fits(&ended, width, ids);
        }
    }
    Ok(())
}

#[tokio::test]
async fn handlers_fit_the_terminal() -> anyhow::Result<()> {
    for command in [&["handler", "list"][..], &["handler", "show", "http"]] {
        let ended = command::run_with(DULY.as_ref(), command, &[("COLUMNS", "80")]).await?;
        assert_fits(&ended, 80, &[]);
    }
    Ok(())
}

#[tokio::test]
async fn attempts_show_how_they_ended_and_how_long_they_took() -> anyhow::Result<()> {
    let world = World::start().await?;
    let run = ["task", "run", "flaky", "-d", r#"{"failTimes":1}"#, "--backoff", "none"];
    let ended = world.duly(&[&run[..], &["--wait", "-o", "id"]].concat()).await?;
    let id = ended.line()?.to_owned();
    let ended = world.duly_with(&[("COLUMNS", "80")], &["task", "attempts", &id]).await?;
    assert_fits(&ended, 80, &[]);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("RUN  ATTEMPT  STATUS   STARTED AT "), "{ended:?}");
    assert!(
        lines[1].starts_with("1    1        FAILED ") && lines[1].contains("FLAKY"),
        "{ended:?}"
    );
    assert!(
        lines[2].starts_with("1    2        SUCCESS ") && lines[2].ends_with(" s"),
        "{ended:?}"
    );
    Ok(())
}

#[tokio::test]
async fn long_values_are_indented() -> anyhow::Result<()> {
    let world = World::start().await?;
    let payload = format!("{{\"words\":\"{}\"}}", "some words ".repeat(20));
    let ended = world.duly(&["task", "run", "echo", "-d", &payload, "-o", "id"]).await?;
    let id = ended.line()?.to_owned();
    world.duly(&["task", "get", &id, "--wait"]).await?;
    let ended = world.duly_with(&[("COLUMNS", "80")], &["task", "get", &id]).await?;
    assert_fits(&ended, 80, std::slice::from_ref(&id));
    let lines: Vec<_> = ended.stdout.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("payload")).expect("a payload");
    assert!(lines[at + 1].starts_with("             "), "{}", ended.stdout);
    let whole = world.duly(&["task", "get", &id]).await?;
    assert!(whole.stdout.contains(&payload), "nothing is cut for a program: {whole:?}");
    Ok(())
}

#[tokio::test]
async fn colours_are_for_terminals_and_can_be_refused() -> anyhow::Result<()> {
    const RED: &str = "\x1b[31mFAILED\x1b[0m";
    let world = World::start().await?;
    let id = world.failed().await?;
    let ended = world.duly(&["task", "list"]).await?;
    assert!(!ended.stdout.contains('\x1b'), "no terminal: {ended:?}");
    let shown = world.duly_on_terminal(&["task", "list"], "").await?;
    assert!(shown.screen.contains(RED) && shown.screen.contains(&id), "{shown:?}");
    assert!(shown.screen.contains('…'), "the error is cut at 80 columns: {shown:?}");
    let shown = world.duly_on_terminal(&["task", "list", "--no-color"], "").await?;
    assert!(!shown.screen.contains('\x1b'), "{shown:?}");
    let line = ["task", "list", "--server", world.server.url()];
    let shown = terminal::run(DULY.as_ref(), &line, &[("NO_COLOR", "1")], 80, "").await?;
    assert!(!shown.screen.contains('\x1b') && shown.screen.contains("FAILED"), "{shown:?}");
    Ok(())
}
