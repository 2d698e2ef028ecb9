//! Several tasks in one command, and tasks by the beginning of their ids.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{ABSENT, World, run};

/// A server that answers every request alike, and the first lines of what it was asked.
struct Stub {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _connections: JoinSet<()>,
}

impl Stub {
    async fn start(status: &'static str, body: &'static str) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut lines = BufReader::new(stream).lines();
                let Ok(Some(first)) = lines.next_line().await else { continue };
                while lines.next_line().await.is_ok_and(|line| line.is_some_and(|it| !it.is_empty())) {}
                heard.lock().expect("no test panics here").push(first);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                lines.get_mut().get_mut().write_all(answer.as_bytes()).await.ok();
            }
        });
        Ok(Self { url, asked, _connections: connections })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics here").clone()
    }
}

#[tokio::test]
async fn the_beginning_of_an_id_is_left_to_the_server() -> anyhow::Result<()> {
    const AMBIGUOUS: &str = r#"{"type":"urn:duly:error:AMBIGUOUS_ID","title":"t","status":409,
        "code":"AMBIGUOUS_ID","detail":"several ids begin so: 01920000-0000-7000-8000-00000000000b",
        "candidates":["01920000-0000-7000-8000-00000000000b"]}"#;
    let stub = Stub::start("409 Conflict", AMBIGUOUS).await?;
    let prefix = &ABSENT[..13];
    for (command, path) in [
        (&["task", "get"][..], "GET /v1/tasks/01920000-0000"),
        (&["task", "get", "--wait"], "GET /v1/tasks/01920000-0000?wait="),
        (&["task", "cancel"], "POST /v1/tasks/01920000-0000/cancel"),
        (&["task", "retry"], "POST /v1/tasks/01920000-0000/retry"),
        (&["task", "replay"], "POST /v1/tasks/01920000-0000/replay"),
        (&["task", "edit", "--priority", "1"], "PATCH /v1/tasks/01920000-0000"),
        (&["task", "delete"], "DELETE /v1/tasks/01920000-0000"),
        (&["task", "explain"], "GET /v1/tasks/01920000-0000/explain"),
        (&["task", "attempts"], "GET /v1/tasks/01920000-0000/attempts"),
        (&["task", "logs"], "GET /v1/tasks/01920000-0000/logs"),
        (&["task", "watch"], "GET /v1/tasks/01920000-0000"),
        (&["bulk", "status"], "GET /v1/bulk-actions/01920000-0000"),
        (&["bulk", "abort"], "POST /v1/bulk-actions/01920000-0000/abort"),
    ] {
        let ended = run(&[command, &[prefix, "--server", &stub.url]].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{ended:?}");
        assert!(
            ended.stderr.contains("01920000-0000-7000-8000-00000000000b"),
            "it names the candidates: {ended:?}"
        );
        let asked = stub.asked();
        assert!(asked.last().is_some_and(|line| line.starts_with(path)), "{asked:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_beginning_of_an_id_names_the_task_if_no_other_begins_so() -> anyhow::Result<()> {
    let world = World::start().await?;
    let later = ["task", "run", "echo", "--delay"];
    let alone = world.duly(&[&later[..], &["1h", "-o", "id"]].concat()).await?.line()?.to_owned();
    for length in [13, 20, 36] {
        let ended = world.duly(&["task", "get", &alone[..length], "-o", "id"]).await?;
        assert_eq!((ended.code, ended.line()?), (Some(0), alone.as_str()), "{ended:?}");
    }
    // An id begins with the due time, if that is an instant; with a delay it is an estimate.
    let task = world.duly(&[&later[..], &["2h", "-o", "json"]].concat()).await?.json()?;
    let due = task["runAt"].as_str().unwrap_or_default();
    let twin = ["task", "run", "echo", "--at", due, "-o", "id"];
    let one = world.duly(&twin).await?.line()?.to_owned();
    let other = world.duly(&twin).await?.line()?.to_owned();
    let ended = world.duly(&["task", "get", &one[..13]]).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{ended:?}");
    assert!(ended.stderr.contains(&one) && ended.stderr.contains(&other), "{ended:?}");
    assert!(!ended.stderr.contains(&alone), "{ended:?}");
    let ended = world.duly(&["task", "get", &alone[..12]]).await?;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("a prefix of 13 or more"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_task_is_deleted_only_when_it_has_ended() -> anyhow::Result<()> {
    let world = World::start().await?;
    let failed = world.failed().await?;
    let ended = world.duly(&["task", "delete", &failed]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "deleted 1 task"), "{ended:?}");
    for command in ["get", "delete", "attempts"] {
        let ended = world.duly(&["task", command, &failed]).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
    }
    let run = ["task", "run", "echo", "--delay", "1h", "-o", "id"];
    let waiting = world.duly(&run).await?.line()?.to_owned();
    let ended = world.duly(&["task", "delete", &waiting]).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{ended:?}");
    assert!(ended.stderr.contains("cancel it first"), "{ended:?}");
    world.duly(&["task", "cancel", &waiting]).await?;
    let ended = world.duly(&["task", "delete", &waiting, "-o", "id"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), waiting.as_str()), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn several_tasks_are_deleted() -> anyhow::Result<()> {
    let stub = Stub::start("204 No Content", "").await?;
    let delete = ["task", "delete", ABSENT, &ABSENT[..20], "--server", &stub.url];
    let ended = run(&delete).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "deleted 2 tasks"), "{ended:?}");
    let asked = stub.asked();
    assert!(asked.iter().all(|line| line.starts_with("DELETE /v1/tasks/01920000")), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn each_task_is_tried_and_the_first_failure_is_the_exit_code() -> anyhow::Result<()> {
    let world = World::start().await?;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let ended = world.duly(&["task", "run", "echo", "--delay", "1h", "-o", "id"]).await?;
        ids.push(ended.line()?.to_owned());
    }
    let three = [ids[0].as_str(), ABSENT, ids[1].as_str()];
    let ended = world.duly(&[&["task", "cancel", "-o", "id"], &three[..]].concat()).await?;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stdout, format!("{}\n{}\n", ids[0], ids[1]), "{ended:?}");
    assert!(ended.stderr.contains(&format!("error: {ABSENT}: ")), "{ended:?}");
    let ended = world.duly(&[&["task", "retry"], &three[..]].concat()).await?;
    assert_eq!(ended.code, Some(5), "the first one has ended: {ended:?}");
    let ended = world.duly(&[&["task", "replay", "-o", "json"], &three[..]].concat()).await?;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.json()?.as_array().map(Vec::len), Some(2), "{ended:?}");
    let ended =
        world.duly(&[&["task", "get", "--wait=30s", "-o", "id"], &three[..]].concat()).await?;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stdout, format!("{}\n{}\n", ids[0], ids[1]), "{ended:?}");
    let ended = world.duly(&["task", "get", &ids[0], &ids[1]]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches("SUCCESS").count(), 2, "{ended:?}");
    assert_eq!(ended.stdout.matches("\n\nid").count(), 1, "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn lists_are_narrowed_by_flags() -> anyhow::Result<()> {
    let world = World::start().await?;
    let failed = world.failed().await?;
    let echo = ["task", "run", "echo", "--queue", "mail", "--wait", "-o", "id"];
    let mail = world.duly(&echo).await?.line()?.to_owned();
    for (flags, id) in [
        (&["--status", "failed"][..], &failed),
        (&["--type", "flaky"], &failed),
        (&["--queue", "mail"], &mail),
        (&["--queue", "mail", "type:echo", "--status", "SUCCESS"], &mail),
        (&["--filter", "type:echo", "--status", "success,failed"], &mail),
    ] {
        let ended = world.duly(&[&["task", "list", "-o", "id"], flags].concat()).await?;
        assert_eq!((ended.code, ended.line()?), (Some(0), id.as_str()), "{flags:?}: {ended:?}");
    }
    for list in [&["dlq", "list"][..], &["dlq", "groups"]] {
        let ended = world.duly(&[list, &["--queue", "mail"]].concat()).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    }
    let ended =
        world.duly(&["bulk", "replay", "--queue", "mail", "--status", "success", "--dry-run"]);
    assert_eq!(ended.await?.line()?, "would replay 1 task");
    Ok(())
}
