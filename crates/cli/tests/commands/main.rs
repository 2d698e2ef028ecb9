//! The commands of the real binary: data on standard output, messages on standard error, and an
//! exit code that scripts can rely on; and the scripts and examples that use them.

mod audit;
mod bench;
mod columns;
mod databases;
mod dead_letters;
mod doctor;
mod events;
mod examples;
mod handlers;
mod import;
mod logs;
mod mails;
mod nodes;
mod samples;
mod schedules;
mod services;
mod settings;
mod several;
mod verbose;
mod worker;
mod workflow_examples;
mod workflows;

use std::path::Path;

use duly_testkit::Server;
use duly_testkit::command::{self, Ended};
use duly_testkit::terminal::{self, Shown};
use duly_testkit::wait::{PATIENCE, eventually};

const DULY: &str = env!("CARGO_BIN_EXE_duly");
const ABSENT: &str = "01920000-0000-7000-8000-000000000000";
/// A port that nothing listens on: it is reserved.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A server and its data, for as long as a test needs them.
struct World {
    server: Server,
    data: tempfile::TempDir,
}

impl World {
    async fn start() -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let server = Server::start(Path::new(DULY), data.path(), &[]).await?;
        Ok(Self { server, data })
    }

    /// Runs a command of the client against the server.
    async fn duly(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        run(&[arguments, &["--server", self.server.url()]].concat()).await
    }

    /// The same with these variables in its environment.
    async fn duly_with(
        &self,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> anyhow::Result<Ended> {
        let line = [arguments, &["--server", self.server.url()]].concat();
        command::run_with(Path::new(DULY), &line, variables).await
    }

    /// The same on a terminal of 80 columns, where this is typed.
    async fn duly_on_terminal(&self, arguments: &[&str], typed: &str) -> anyhow::Result<Shown> {
        let line = [arguments, &["--server", self.server.url()]].concat();
        terminal::run(Path::new(DULY), &line, &[], 80, typed).await
    }

    /// A task that has failed; its id.
    async fn failed(&self) -> anyhow::Result<String> {
        let flaky = ["task", "run", "flaky", "-d", r#"{"failTimes":9}"#, "--retries", "0"];
        let ended = self.duly(&[&flaky[..], &["--wait", "-o", "id"]].concat()).await?;
        Ok(ended.line()?.to_owned())
    }
}

async fn run(arguments: &[&str]) -> anyhow::Result<Ended> {
    let ended = command::run(Path::new(DULY), arguments).await?;
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    Ok(ended)
}

#[tokio::test]
async fn waiting_for_a_task_prints_its_result() -> anyhow::Result<()> {
    let world = World::start().await?;
    let ended = world.duly(&["task", "run", "echo", "-d", r#"{"hi":1}"#, "--wait"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), r#"{"hi":1}"#));
    assert!(ended.stderr.contains("SUCCESS"), "{ended:?}");
    let flaky = ["task", "run", "flaky", "-d", r#"{"failTimes":1}"#, "--wait=60s", "-o", "json"];
    let ended = world.duly(&flaky).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let task = ended.json()?;
    assert_eq!((&task["status"], &task["attempt"]), (&"SUCCESS".into(), &2.into()), "{task}");
    Ok(())
}

#[tokio::test]
async fn a_task_that_fails_exits_6() -> anyhow::Result<()> {
    let world = World::start().await?;
    let flaky = ["task", "run", "flaky", "-d", r#"{"failTimes":9}"#, "--retries", "0"];
    let ended = world.duly(&[&flaky[..], &["--wait"]].concat()).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(6), ""), "{ended:?}");
    assert!(ended.stderr.contains("FAILED") && ended.stderr.contains("FLAKY"), "{ended:?}");
    let submitted = world.duly(&[&flaky[..], &["-o", "id"]].concat()).await?;
    let ended = world.duly(&["task", "get", submitted.line()?, "--wait"]).await?;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_wait_that_is_over_exits_7_and_the_task_goes_on() -> anyhow::Result<()> {
    let world = World::start().await?;
    let run = ["task", "run", "echo", "-d", "1", "--delay", "2s", "--wait=50ms"];
    let ended = world.duly(&run).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(7), ""), "{ended:?}");
    let advice = ended.stderr.split("duly task get ").nth(1).expect("it says how to go on");
    let id = advice.split(' ').next().expect("an id");
    let ended = world.duly(&["task", "get", id, "--wait=1ms"]).await?;
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let ended = world.duly(&["task", "get", id, "--wait"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "1"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_exits_3() -> anyhow::Result<()> {
    let world = World::start().await?;
    for more in [&[][..], &["--wait"], &["-o", "json"]] {
        let ended = world.duly(&[&["task", "get", ABSENT], more].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
        assert!(ended.stderr.contains("TASK_NOT_FOUND"), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_not_there_exits_1_with_advice() -> anyhow::Result<()> {
    for command in [&["task", "run", "echo"][..], &["task", "get", ABSENT], &["task", "list"]] {
        let ended = run(&[command, &["--server", NOWHERE]].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains(NOWHERE), "{ended:?}");
        assert!(ended.stderr.contains("duly dev"), "it says what to do: {ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn bad_flags_exit_2_and_bad_requests_1() -> anyhow::Result<()> {
    let world = World::start().await?;
    for command in [
        &["task", "run"][..],
        &["task", "run", "echo", "--nonsense"],
        &["task", "run", "echo", "--delay", "soon"],
        &["task", "run", "echo", "-d", "no json"],
        &["task", "run", "echo", "--wait=soon"],
        &["task", "run", "echo", "--backoff", "sometimes"],
        &["task", "edit", ABSENT, "-d", "{"],
        &["task", "get", "01920000-000"],
        &["task", "run", "echo", "--delay", "1s", "--at", "2030-01-01T00:00:00Z"],
        &["task", "run", "echo", "--priority", "x"],
        &["task", "get", "not-an-id"],
        &["task", "list", "--limit", "0"],
        &["task", "list", "-o", "yaml"],
        &["nonsense"],
    ] {
        let ended = world.duly(command).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{command:?}: {ended:?}");
    }
    let ended = run(&["task", "list", "--server", "ftp://x"]).await?;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for (command, code) in [
        (&["task", "run", "!echo"][..], "INVALID_FIELDS"),
        (&["task", "run", "echo", "--priority", "10"], "INVALID_FIELDS"),
        (&["task", "list", "--cursor", "x"], "INVALID_CURSOR"),
    ] {
        let ended = world.duly(command).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{command:?}: {ended:?}");
        assert!(ended.stderr.contains(code), "{ended:?}");
    }
    assert_eq!(world.duly(&["task", "list", "-o", "id"]).await?.stdout, "");
    Ok(())
}

#[tokio::test]
async fn the_same_task_is_printed_for_people_and_for_programs() -> anyhow::Result<()> {
    let world = World::start().await?;
    let submit = ["task", "run", "echo", "-d", "7", "--label", "a=b", "--idempotency-key", "k"];
    let submitted = world.duly(&[&submit[..], &["-o", "id"]].concat()).await?;
    let id = submitted.line()?;
    let again = world.duly(&[&submit[..], &["-o", "json"]].concat()).await?.json()?;
    assert_eq!(again["taskId"], id, "the key leads to the same task");
    world.duly(&["task", "get", id, "--wait"]).await?;
    let json = world.duly(&["task", "get", id, "-o", "json"]).await?.json()?;
    assert_eq!((&json["taskId"], &json["labels"]["a"]), (&id.into(), &"b".into()), "{json}");
    assert_eq!(world.duly(&["task", "get", id, "-o", "id"]).await?.line()?, id);
    let table = world.duly(&["task", "get", id]).await?.stdout;
    for part in [id, "SUCCESS", "a=b", "1 of 4"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let table = world.duly(&["task", "list"]).await?.stdout;
    assert!(table.starts_with("ID") && table.contains(id) && table.contains("1/4"), "{table}");
    let json = world.duly(&["task", "list", "-o", "json"]).await?.json()?;
    assert_eq!(json["items"][0]["taskId"], id, "{json}");
    Ok(())
}

#[tokio::test]
async fn lists_are_read_page_by_page() -> anyhow::Result<()> {
    let world = World::start().await?;
    let empty = world.duly(&["task", "list"]).await?;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{empty:?}");
    let mut submitted = Vec::new();
    for _ in 0..5 {
        let ended = world.duly(&["task", "run", "echo", "-o", "id"]).await?;
        submitted.push(ended.line()?.to_owned());
    }
    submitted.reverse();
    let mut listed: Vec<String> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut arguments = vec!["task", "list", "--limit", "2", "-o", "id"];
        arguments.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
        let page = world.duly(&arguments).await?;
        assert_eq!(page.code, Some(0), "{page:?}");
        assert!(page.stdout.lines().count() <= 2, "{page:?}");
        listed.extend(page.stdout.lines().map(str::to_owned));
        cursor = page.stderr.trim().split("--cursor ").nth(1).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, submitted, "newest first, each once");
    Ok(())
}

#[tokio::test]
async fn doctor_exits_0_when_nothing_is_in_the_way_and_1_otherwise() -> anyhow::Result<()> {
    let world = World::start().await?;
    let data = world.data.path().to_str().expect("a temporary path is plain");
    let ended = world.duly(&["doctor", "--data", data]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let pid = format!("pid {}", world.server.pid());
    assert!(ended.stdout.contains(&pid) && ended.stdout.contains("ready"), "{ended:?}");
    let ended = world.duly(&["doctor", "--data", "/proc/duly"]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("FAILED") && ended.stdout.contains("--data"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn lists_are_narrowed_by_terms() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut ids = Vec::new();
    for label in ["city=New York", "city=Rome"] {
        let run = ["task", "run", "echo", "--label", label, "--wait", "-o", "id"];
        ids.push(world.duly(&run).await?.line()?.to_owned());
    }
    for terms in [vec!["label.city:New York"], vec!["--filter", r#"label.city:"New York""#]] {
        let list = [&["task", "list", "-o", "id"], &terms[..]].concat();
        let ended = world.duly(&list).await?;
        assert_eq!((ended.code, ended.line()?), (Some(0), ids[0].as_str()), "{ended:?}");
    }
    let ended = world.duly(&["task", "list", "status:SUCCESS", "--limit", "1"]).await?;
    assert!(ended.stderr.contains("task list --filter 'status:SUCCESS' --cursor "), "{ended:?}");
    for (arguments, code, words) in [
        (vec!["task", "list", "type:none"], 0, "no task matches"),
        (vec!["task", "list", "type:a", "color:red"], 1, "`color:red` at byte 7 has no known key"),
        (vec!["task", "list", "type:a", "--filter", "type:a"], 2, "cannot be used with"),
        (vec!["task", "list", "--watch"], 1, "needs a terminal"),
        (vec!["task", "list", "--watch", "-o", "json"], 1, "shows a table"),
        (vec!["task", "list", "--watch", "--cursor", "x"], 2, "cannot be used with"),
    ] {
        let ended = world.duly(&arguments).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_looked_at_replayed_and_purged() -> anyhow::Result<()> {
    let world = World::start().await?;
    let flaky = ["task", "run", "flaky", "-d", r#"{"failTimes":9}"#, "--retries", "0"];
    let ended = world.duly(&[&flaky[..], &["--wait", "-o", "id"]].concat()).await?;
    let id = ended.line()?.to_owned();
    let ended = world.duly(&["task", "attempts", &id]).await?;
    assert_eq!((ended.code, ended.stdout.contains("FLAKY")), (Some(0), true), "{ended:?}");
    let ended = world.duly(&["dlq", "list", "type:flaky", "since:1h", "-o", "id"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), id.as_str()));
    let ended = world.duly(&["dlq", "groups", "--filter", "type:flaky", "-o", "json"]).await?;
    let group = ended.json()?["items"][0]["group"].as_str().expect("a group").to_owned();
    let ended = world.duly(&["dlq", "list", "type:echo"]).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let term = format!("group:{group}");
    let ended = world.duly(&["dlq", "replay", &term, "--per-second", "10"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "replayed 1 dead letter"));
    world.duly(&["task", "get", &id, "--wait"]).await?;
    let ended = world.duly(&["dlq", "purge", &term, "--yes"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "purged 1 dead letter"));
    assert_eq!(world.duly(&["task", "attempts", &id]).await?.code, Some(3));
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_not_deleted_by_mistake() -> anyhow::Result<()> {
    let world = World::start().await?;
    for (arguments, code, words) in [
        (vec!["dlq", "purge", "--all"], 2, "--yes"),
        (vec!["dlq", "purge", "--yes"], 2, "pass a filter"),
        (vec!["dlq", "purge", "--yes", "color:red"], 1, "no known key"),
        (vec!["bulk", "delete", "type:flaky"], 2, "--yes"),
        (vec!["dlq", "list", "type:a", "--filter", "type:a"], 2, "cannot be used with"),
        (vec!["dlq", "replay", "--all", "--per-second", "0"], 1, "/perSecond"),
    ] {
        let ended = world.duly(&arguments).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_paused_queue_is_seen_explained_and_resumed() -> anyhow::Result<()> {
    let world = World::start().await?;
    let ended = world.duly(&["queue", "resume", "mail"]).await?;
    assert_eq!(ended.code, Some(3), "no task was ever submitted to it: {ended:?}");
    let ended = world.duly(&["queue", "pause", "mail"]).await?;
    assert_eq!(ended.code, Some(0), "it can be paused before its first task: {ended:?}");
    assert_eq!(world.duly(&["queue", "resume", "mail"]).await?.code, Some(0));
    let first = ["task", "run", "echo", "--queue", "mail", "--wait"];
    assert_eq!(world.duly(&first).await?.code, Some(0));
    let ended = world.duly(&["queue", "pause", "mail", "--note", "the relay is down"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("next: duly queue resume mail"), "{ended:?}");
    let ended = world.duly(&["task", "run", "echo", "--queue", "mail", "-o", "id"]).await?;
    let id = ended.line()?.to_owned();
    let ended = world.duly(&["task", "explain", &id]).await?;
    assert!(ended.stdout.contains("the queue mail is paused since"), "{ended:?}");
    assert!(ended.stderr.contains("next: duly queue resume mail"), "{ended:?}");
    let ended = world.duly(&["queue", "list"]).await?;
    assert!(ended.stdout.contains("paused the relay is down"), "{ended:?}");
    let ended = world.duly(&["queue", "stats", "mail", "-o", "json"]).await?;
    assert_eq!(ended.json()?["waiting"]["count"], 1, "{ended:?}");
    assert_eq!(world.duly(&["queue", "resume", "mail"]).await?.code, Some(0));
    assert_eq!(world.duly(&["task", "get", &id, "--wait"]).await?.code, Some(0));
    let ended = world.duly(&["task", "explain", &id, "-o", "json"]).await?;
    assert_eq!(ended.json()?["reasons"][0]["code"], "ENDED", "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_task_that_is_cancelled_without_a_reason_needs_no_colon() -> anyhow::Result<()> {
    let world = World::start().await?;
    for (reason, said) in [(&[][..], "attempts\n"), (&["--reason", "late"], "attempts: late\n")] {
        let ended = world.duly(&["task", "run", "echo", "--delay", "1h", "-o", "id"]).await?;
        let id = ended.line()?.to_owned();
        let cancel = world.duly(&[&["task", "cancel", &id], reason].concat()).await?;
        assert_eq!(cancel.code, Some(0), "{cancel:?}");
        let ended = world.duly(&["task", "get", &id, "--wait"]).await?;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(ended.stderr.ends_with(&format!("CANCELLED after 0 {said}")), "{ended:?}");
        let table = world.duly(&["task", "get", &id]).await?.stdout;
        let error = table.lines().find(|line| line.starts_with("error")).expect("an error");
        assert!(error.ends_with("CANCELLED") || error.ends_with(": late"), "{table}");
    }
    Ok(())
}

#[tokio::test]
async fn a_bulk_action_for_other_states_says_once_what_it_takes() -> anyhow::Result<()> {
    let world = World::start().await?;
    let ended = world.duly(&["bulk", "cancel", "status:failed"]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stderr.matches("`status:failed`").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("only BLOCKED, PENDING or RUNNING here"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn the_word_after_wait_is_the_type() -> anyhow::Result<()> {
    let world = World::start().await?;
    let ended = world.duly(&["task", "run", "--wait", "echo", "-d", "7"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "7"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn retries_are_spaced_as_the_command_line_says() -> anyhow::Result<()> {
    let world = World::start().await?;
    let flaky = ["task", "run", "flaky", "-d", r#"{"failTimes":1}"#];
    let ended = world.duly(&[&flaky[..], &["--backoff", "none", "--wait=20s"]].concat()).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), r#"{"attempts":2}"#), "{ended:?}");
    let hour = ["--backoff", "fixed,base=1h,jitter=none", "-o", "id"];
    let id = world.duly(&[&flaky[..], &hour].concat()).await?.line()?.to_owned();
    let waits = || async {
        let ended = world.duly(&["task", "explain", &id]).await.ok()?;
        ended.stdout.contains("the next one waits until").then_some(())
    };
    eventually("the task waits for an hour", PATIENCE, waits).await
}

#[tokio::test]
async fn advice_names_no_worker_that_does_not_serve_the_type() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["--concurrency", "0"]).await?;
    let world = World { server, data };
    for (task_type, next) in [
        ("echo", "next: duly worker run\n"),
        ("shell", "next: duly worker run --allow-shell\n"),
        ("email", "registers the type email; docs/worker-protocol.md"),
    ] {
        let id = world.duly(&["task", "run", task_type, "-o", "id"]).await?.line()?.to_owned();
        let ended = world.duly(&["task", "explain", &id]).await?;
        assert!(ended.stderr.contains(next), "{ended:?}");
    }
    Ok(())
}
