//! Who changed what.

use crate::World;

#[tokio::test]
async fn s30_changes_are_listed_with_who_made_them() -> anyhow::Result<()> {
    let world = World::start().await?;
    let none = world.duly(&["audit"]).await?;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    world.duly(&["queue", "pause", "mail", "--note", "down"]).await?;
    world.duly(&["settings", "set", "retries=7"]).await?;
    let ended = world.duly(&["audit", "-o", "json"]).await?;
    let page = ended.json()?;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    let entry = &page["items"][0];
    assert_eq!((&entry["action"], &entry["target"]), (&"queue.pause".into(), &"mail".into()));
    assert_eq!(entry["actor"], "anonymous");
    assert_eq!(entry["after"]["note"], "down");
    assert!(entry["requestId"].is_string(), "{entry}");

    let ended = world.duly(&["audit", "--installation"]).await?;
    for text in ["settings.put", "queue.pause", "mail", "anonymous"] {
        assert!(ended.stdout.contains(text), "{text}: {ended:?}");
    }
    let one = ["audit", "--installation", "--limit", "1", "-o", "id"];
    let first = world.duly(&one).await?;
    let newest = first.line()?.to_owned();
    let cursor = first.stderr.split("--cursor ").nth(1).map(str::trim).unwrap_or_default();
    let next = world.duly(&[&one[..], &["--cursor", cursor]].concat()).await?;
    assert_ne!(next.line()?, newest, "{next:?}");
    for (filter, count) in [
        (&["--actor", "anonymous"][..], 1),
        (&["--actor", "key:7"], 0),
        (&["--action", "queue", "--since", "1h"], 1),
        (&["--action", "task"], 0),
        (&["--target", "mail"], 1),
    ] {
        let ended = world.duly(&[&["audit", "-o", "id"], filter].concat()).await?;
        assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), count), "{filter:?}");
    }
    let refused = world.duly(&["audit", "--since", "soon"]).await?;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    Ok(())
}
