//! `duly schedule`: what is printed, where errors stand in a file, and what is refused.

use std::path::Path;

use duly_testkit::wait::{PATIENCE, eventually};
use serde_json::Value;

use crate::World;
use crate::workflow_examples::run_documented;

/// Fires on a day that no test sees.
const NIGHTLY: [&str; 11] = [
    "schedule",
    "create",
    "nightly",
    "--cron",
    "30 2 * * SUN",
    "--tz",
    "Europe/Rome",
    "--type",
    "echo",
    "-d",
    r#"{"hi":1}"#,
];

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("the folder can be written");
    file.display().to_string()
}

#[tokio::test]
async fn create_says_what_it_means_and_when_it_runs() -> anyhow::Result<()> {
    let world = World::start().await?;
    let more = ["--queue", "mail", "--priority", "7", "--retries", "1", "--overlap", "buffer-one"];
    let still = ["--misfire", "all", "--jitter", "10s", "--catch-up", "2h", "--label", "a=b"];
    let period = ["--start-at", "2027-01-01T00:00:00Z", "--end-at", "2090-01-01T00:00:00Z"];
    let line = [&NIGHTLY[..], &more, &still, &period, &["--note", "for Ada"]].concat();
    let dry = world.duly(&[&line[..], &["--dry-run"]].concat()).await?;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let none = world.duly(&["schedule", "list", "-o", "id"]).await?;
    assert_eq!(none.stdout, "", "a dry run creates nothing");
    let made = world.duly(&line).await?;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(made.stdout, dry.stdout, "{made:?}");
    let lines: Vec<_> = made.stdout.lines().collect();
    assert!(lines[0].starts_with("nightly: ") && lines[0].ends_with("(Europe/Rome)"), "{lines:?}");
    assert!(lines[1].starts_with("NEXT RUN") && lines[1].ends_with("EUROPE/ROME"), "{lines:?}");
    assert!(lines[2..7].iter().all(|line| line.contains("Sun ")), "{lines:?}");
    assert!(lines[7].contains("the clocks in Europe/Rome go"), "{lines:?}");
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert!(made.stderr.contains("next: duly schedule runs nightly"), "{made:?}");
    let view = world.duly(&["schedule", "get", "nightly", "-o", "json"]).await?.json()?;
    for (pointer, value) in [
        ("/cron", "30 2 * * SUN".into()),
        ("/task/payload/hi", 1.into()),
        ("/task/queue", "mail".into()),
        ("/task/priority", 7.into()),
        ("/task/retries", 1.into()),
        ("/overlap", "bufferOne".into()),
        ("/misfire", "all".into()),
        ("/jitterSeconds", 10.0.into()),
        ("/catchUpSeconds", 7200.0.into()),
        ("/labels/a", "b".into()),
        ("/note", "for Ada".into()),
        ("/startAt", "2027-01-01T00:00:00.000Z".into()),
        ("/endAt", "2090-01-01T00:00:00.000Z".into()),
    ] {
        assert_eq!(view.pointer(pointer), Some::<&Value>(&value), "{pointer}");
    }
    let again = world.duly(&NIGHTLY).await?;
    assert_eq!((again.code, again.stdout.as_str()), (Some(5), ""), "{again:?}");
    assert!(again.stderr.contains("VERSION_MISMATCH"), "{again:?}");
    Ok(())
}

#[tokio::test]
async fn bad_flags_exit_2_and_bad_definitions_1() -> anyhow::Result<()> {
    let world = World::start().await?;
    let create = ["schedule", "create", "x"];
    for more in [
        &["--type", "echo"][..],
        &["--every", "1m"],
        &["--every", "1m", "--cron", "* * * * *", "--type", "echo"],
        &["--at", "soon", "--type", "echo"],
        &["--every", "1m", "--type", "echo", "--overlap", "maybe"],
        &["--every", "1m", "--type", "echo", "-d", "{"],
    ] {
        let ended = world.duly(&[&create[..], more].concat()).await?;
        assert_eq!(ended.code, Some(2), "{more:?}: {ended:?}");
    }
    for (more, pointer) in [
        (&["--every", "soon"][..], "/every"),
        (&["--cron", "61 * * * *"], "/cron"),
        (&["--cron", "0 * * * *", "--tz", "Rome"], "/timeZone"),
        (&["--at", "2001-01-01T00:00:00Z"], "/at"),
        (&["--every", "1m", "--queue", "!"], "/task/queue"),
    ] {
        let ended = world.duly(&[&create[..], more, &["--type", "echo"]].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{more:?}: {ended:?}");
        assert!(ended.stderr.contains(pointer), "{more:?}: {ended:?}");
    }
    for verb in ["get", "next", "runs", "pause", "resume", "trigger", "delete"] {
        let ended = world.duly(&["schedule", verb, "absent"]).await?;
        assert_eq!(ended.code, Some(3), "{verb}: {ended:?}");
        assert!(ended.stderr.contains("SCHEDULE_NOT_FOUND"), "{verb}: {ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_is_applied_as_a_whole() -> anyhow::Result<()> {
    let world = World::start().await?;
    let folder = tempfile::tempdir()?;
    let good = "- name: nightly\n  cron: 0 2 29 2 *\n  task: {type: echo}\n\n- name: report\n  \
                every: 9000h\n  overlap: allow\n  workflow:\n    tasks:\n      a: {type: echo}\n";
    for (text, places) in [
        (
            good.replace("0 2 29", "0 25 29").replace("allow", "maybe"),
            &[":2:3: /cron: ", ":7:3: /overlap: "][..],
        ),
        (
            good.replace("a: {type: echo}", "a: {type: echo, oops: 1}"),
            &[":10:23: /workflow/tasks/a/oops: "],
        ),
        (good.replace("report", "nightly"), &[":5:3: /name: is given twice"]),
        (good.replace("name: report\n  ", ""), &[": /name: is required"]),
        ("name: x\nevery: 1ms\ntask: {type: echo}\n".to_owned(), &[":2:1: /every: "]),
        (
            "[{\"name\": \"x\",\n  \"every\": 5, \"task\": {}}]".to_owned(),
            &[":2:3: /every: ", "/task/type: "],
        ),
        ("- name: [\n".to_owned(), &[":"]),
    ] {
        let file = write(folder.path(), "bad.yaml", &text);
        let ended = world.duly(&["schedule", "apply", &file]).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{text}: {ended:?}");
        for place in places {
            assert!(ended.stderr.contains(place), "{text}: {place}: {ended:?}");
        }
        assert!(ended.stderr.contains(&file), "{ended:?}");
    }
    assert_eq!(world.duly(&["schedule", "list", "-o", "id"]).await?.stdout, "");
    let file = write(folder.path(), "good.yaml", good);
    for _ in 0..2 {
        let ended = world.duly(&["schedule", "apply", &file, "-o", "id"]).await?;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "nightly\nreport\n"),
            "{ended:?}"
        );
    }
    let one = write(
        folder.path(),
        "one.json",
        r#"{"name": "one", "at": "2027-06-01T00:00:00Z", "task": {"type": "echo"}}"#,
    );
    let ended = world.duly(&["schedule", "apply", &one]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let absent = world.duly(&["schedule", "apply", "absent.yaml"]).await?;
    assert_eq!(absent.code, Some(2), "{absent:?}");
    let listed = world.duly(&["schedule", "list"]).await?;
    let names: Vec<_> = listed.stdout.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names, ["NAME", "nightly", "one", "report"], "{listed:?}");
    Ok(())
}

#[tokio::test]
async fn slots_of_the_past_are_shown_and_then_run() -> anyhow::Result<()> {
    let world = World::start().await?;
    let create = ["schedule", "create", "rare", "--every", "9000h", "--type", "echo"];
    assert_eq!(world.duly(&create).await?.code, Some(0));
    let period = ["--from", "2001-01-01T00:00:00Z", "--to", "2099-01-01T00:00:00Z"];
    let line = [&["schedule", "backfill", "rare"][..], &period].concat();
    let dry = world.duly(&[&line[..], &["--dry-run"]].concat()).await?;
    assert!(dry.stdout.starts_with("SLOT") && dry.stdout.trim_end().ends_with("yes"), "{dry:?}");
    let started = world.duly(&line).await?;
    let ended = world.duly(&["task", "get", started.line()?, "--wait"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let id = world.duly(&["schedule", "runs", "rare", "-o", "id"]).await?;
    assert_eq!(world.duly(&["task", "get", id.line()?, "--wait"]).await?.code, Some(0));
    let dry = world.duly(&[&line[..], &["--dry-run"]].concat()).await?;
    assert!(dry.stdout.trim_end().ends_with("no, it has run"), "{dry:?}");
    Ok(())
}

#[tokio::test]
async fn a_schedule_is_watched_paused_triggered_and_deleted() -> anyhow::Result<()> {
    let world = World::start().await?;
    let every = ["schedule", "create", "beat", "--every", "1s", "--type", "echo", "-d", "1"];
    let ended = world.duly(&every).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("beat: Every second\n"), "{ended:?}");
    let ran = || async {
        let ended = world.duly(&["schedule", "runs", "beat"]).await.ok()?;
        ended.stdout.contains("SUCCESS").then_some(ended)
    };
    let runs = eventually("the schedule has run", PATIENCE, ran).await?;
    assert!(runs.stdout.starts_with("SLOT"), "{runs:?}");
    let id = world.duly(&["schedule", "runs", "beat", "-o", "id"]).await?.stdout;
    let id = id.lines().last().unwrap();
    let explained = world.duly(&["task", "explain", id]).await?;
    assert!(
        explained.stdout.contains("started by the schedule beat for its slot 2"),
        "{explained:?}"
    );
    let next = world.duly(&["schedule", "next", "beat", "--count", "3", "-o", "id"]).await?;
    assert_eq!(next.stdout.lines().count(), 3, "{next:?}");
    let paused = world.duly(&["schedule", "pause", "beat", "--note", "deploying"]).await?;
    assert!(paused.stdout.contains("PAUSED") && paused.stdout.contains("deploying"), "{paused:?}");
    let next = world.duly(&["schedule", "next", "beat"]).await?;
    assert!(next.stderr.contains("it is paused; next: duly schedule resume beat"), "{next:?}");
    let got = world.duly(&["schedule", "get", "beat"]).await?;
    for part in ["PAUSED", "Every second", "deploying", r#""type":"echo""#] {
        assert!(got.stdout.contains(part), "{part}: {got:?}");
    }
    let triggered = world.duly(&["schedule", "trigger", "beat", "-o", "json"]).await?.json()?;
    assert!(triggered["taskId"].is_string(), "{triggered}");
    let id = triggered["taskId"].as_str().unwrap();
    assert_eq!(world.duly(&["task", "get", id, "--wait"]).await?.line()?, "1");
    for status in ["paused", "active"] {
        let listed = world.duly(&["schedule", "list", "--status", status, "-o", "id"]).await?;
        assert_eq!(listed.stdout.trim(), if status == "paused" { "beat" } else { "" });
        let listed = world.duly(&["schedule", "list", "--label", "a=b", "-o", "id"]).await?;
        assert_eq!(listed.stdout, "", "no schedule has this label");
    }
    let period = ["--from", "1970-01-01T00:00:00Z", "--to", "1970-01-02T00:00:00Z"];
    let line = [&["schedule", "backfill", "beat"][..], &period].concat();
    let nothing = world.duly(&line).await?;
    assert!(nothing.stderr.contains("there is no slot"), "more than 400 days ago: {nothing:?}");
    let resumed = world.duly(&["schedule", "resume", "beat"]).await?;
    assert!(resumed.stdout.contains("ACTIVE"), "{resumed:?}");
    let deleted = world.duly(&["schedule", "delete", "beat"]).await?;
    assert_eq!((deleted.code, deleted.stdout.as_str()), (Some(0), ""), "{deleted:?}");
    assert_eq!(world.duly(&["schedule", "get", "beat"]).await?.code, Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_commands_print_what_they_say() -> anyhow::Result<()> {
    let world = World::start().await?;
    run_documented("docs/schedules.md", world.server.url()).await
}
