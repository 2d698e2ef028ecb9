//! Turns results into docs/benchmarks.md and its plots: `bench_report bench/results docs`.

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, docs] = &arguments[..] else {
        anyhow::bail!("usage: bench_report RESULTS DOCS");
    };
    duly_testkit::bench_page::write(Path::new(results), Path::new(docs))
}
