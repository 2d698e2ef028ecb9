//! Orders for many dead letters or tasks: what they need, what they would do, and who is asked.

use crate::World;

#[tokio::test]
async fn a_replay_of_everything_must_be_asked_for() -> anyhow::Result<()> {
    let world = World::start().await?;
    let id = world.failed().await?;
    for order in ["replay", "purge"] {
        let ended = world.duly(&["dlq", order]).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("--all") && ended.stderr.contains("filter"), "{ended:?}");
        for which in ["--all", "type:flaky", "--type=flaky"] {
            let ended = world.duly(&["dlq", order, which, "--dry-run"]).await?;
            let would = format!("would {order} 1 dead letter");
            assert_eq!((ended.code, ended.line()?), (Some(0), would.as_str()), "{ended:?}");
            assert!(ended.stderr.contains(&id), "{ended:?}");
        }
        let ended = world.duly(&["dlq", order, "type:echo", "--dry-run", "-o", "json"]).await?;
        assert_eq!(ended.json()?["count"], 0, "{ended:?}");
    }
    let ended = world.duly(&["dlq", "list", "-o", "id"]).await?;
    assert_eq!(ended.line()?, id, "nothing was changed");
    let ended = world.duly(&["dlq", "replay", "--all"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(0), "replayed 1 dead letter"));
    Ok(())
}

#[tokio::test]
async fn a_person_at_a_terminal_is_asked() -> anyhow::Result<()> {
    let world = World::start().await?;
    let id = world.failed().await?;
    for (order, question) in [
        (&["dlq", "replay", "type:flaky"][..], "replay 1 dead letter? [y/N]"),
        (&["dlq", "purge", "--all"], "purge 1 dead letter permanently? [y/N]"),
        (&["bulk", "delete", "type:flaky"], "delete 1 task permanently? [y/N]"),
        (&["bulk", "replay", "type:flaky"], "replay 1 task? [y/N]"),
    ] {
        for answer in ["\n", "n\n"] {
            let shown = world.duly_on_terminal(order, answer).await?;
            assert_eq!(shown.code, Some(1), "{shown:?}");
            assert!(shown.screen.contains(question), "{shown:?}");
            assert!(shown.screen.contains("nothing was changed"), "{shown:?}");
        }
    }
    assert_eq!(world.duly(&["dlq", "list", "-o", "id"]).await?.line()?, id);
    let shown = world.duly_on_terminal(&["dlq", "replay", "type:flaky"], "y\n").await?;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.screen.contains("replayed 1 dead letter"), "{shown:?}");
    world.duly(&["task", "get", &id, "--wait"]).await?;
    let shown = world.duly_on_terminal(&["dlq", "purge", "--all", "--yes"], "").await?;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!shown.screen.contains("[y/N]"), "{shown:?}");
    assert!(shown.screen.contains("purged 1 dead letter"), "{shown:?}");
    Ok(())
}
