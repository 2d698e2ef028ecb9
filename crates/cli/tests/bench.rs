//! `duly bench` with the real program, on a small scale: it measures what it says. How fast that is
//! on a busy machine is not judged here.

use std::path::Path;

use duly_testkit::command;

#[tokio::test(flavor = "multi_thread")]
async fn questions_to_a_file_are_measured() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().display());
    let line = ["bench", "--only", "queries", "--tasks", "1000", "--store", &store, "-o", "json"];
    let ended = command::run(Path::new(env!("CARGO_BIN_EXE_duly")), &line).await?;
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let figures = ended.json()?;
    let named = |name: &str| {
        let mut figures = figures["figures"].as_array().into_iter().flatten();
        figures.find(|figure| figure["name"] == name).cloned().unwrap_or_default()
    };
    for kind in ["one task", "list status:RUNNING", "list, no match", "dead letters", "dead groups"]
    {
        let [p50, p95, max] =
            ["p50", "p95", "max"].map(|it| named(&format!("queries: {kind} {it}")));
        assert_eq!(p95["must"]["atMost"], 50.0, "{kind}: {figures}");
        let millis = [&p50, &p95, &max].map(|figure| figure["value"].as_f64().unwrap_or(-1.0));
        assert!(0.0 < millis[0] && millis.is_sorted(), "{kind}: {millis:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "nothing is left behind");
    Ok(())
}
