use super::*;

fn run() -> Run {
    let row = |peer: &str, figure: &str, value: f64, beside: Option<&str>| {
        serde_json::json!({
            "peer": peer, "figure": figure, "value": value, "besideOurs": beside,
        })
    };
    serde_json::from_value(serde_json::json!({
        "date": "2026-01-01", "commit": "abc", "machine": {"cpus": 2},
        "versions": {"duly": "1", "duly-postgres": "1", "bullmq": "2", "river-sqlite": "3"},
        "loadAverage": {"before": [1.0], "after": [1.0]},
        "rows": [
            row("duly", "submit bulk", 800.0, None),
            row("duly", "drain", 400.0, None),
            row("duly", "drain over HTTP", 200.0, None),
            row("bullmq", "submit bulk", 100.0, Some("duly")),
            row("bullmq", "drain", 100.0, Some("duly")),
            row("river-sqlite", "submit bulk", 100.0, Some("duly")),
            row("river-sqlite", "drain", 100.0, Some("duly")),
        ],
    }))
    .unwrap()
}

#[test]
fn engines_in_process_are_set_beside_embedded_ones_only() {
    let sqlite = Some(Figure { value: 300.0, origin: "another run".to_owned() });
    let (run, bulk) = (run(), BulkOverHttp { sqlite, postgres: None });
    let tables = Comparison::new(&run, &bulk).tables();
    let (embedded, servers) = tables.split_once("### Servers").unwrap();
    let line = |text: &str, start: &str| {
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.map(|line| line.replace(" – |", "")).collect::<Vec<_>>()
    };
    assert_eq!(line(embedded, "| **duly**"), ["| **duly**, SQLite (1) | 800 | 400 |"]);
    let river = [
        "| River for Rust, SQLite (3) | 100 | 100 |",
        "| River for Rust, SQLite (3) | 8.00 | 4.00 |",
    ];
    assert_eq!(line(embedded, "| River"), river);
    assert_eq!(
        line(servers, "| **duly** over HTTP, SQLite"),
        ["| **duly** over HTTP, SQLite (1) | 300 | 200 |"]
    );
    assert_eq!(
        line(servers, "| bullmq"),
        ["| bullmq (2) | 100 | 100 |", "| bullmq (2) | 3.00 | 2.00 |"]
    );
    assert!(servers.contains("SQLite: another run") && !embedded.contains("bullmq"), "{tables}");
}
