//! Writes the bill of materials of the binary: `sbom target/sbom/duly.cdx.json`.

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path] = &arguments[..] else {
        anyhow::bail!("usage: sbom PATH");
    };
    duly_testkit::sbom::write(Path::new(path))
}
