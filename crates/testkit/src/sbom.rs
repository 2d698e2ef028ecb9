//! The bill of materials of the binary `duly`, in the format CycloneDX 1.5 as JSON: which crates are in it,
//! in which versions, with which checksums and licences. It is made of what `cargo tree` says of the lock
//! file, for this platform, and holds nothing else, so that the same sources give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// The package of the binary, and the binary's name.
const PACKAGE: &str = "duly-cli";
const BINARY: &str = "duly";

/// A crate, by its name and its version.
type Id = (String, String);

/// A crate that takes part in the build.
struct Part {
    licence: String,
    repository: String,
    uses: BTreeSet<Id>,
}

/// Writes the bill of materials.
pub fn write(path: &Path) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&bill()?)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// The bill of materials.
pub fn bill() -> anyhow::Result<Value> {
    let parts = parts("normal,build")?;
    let linked = self::parts("normal")?;
    let checksums = checksums()?;
    let (root, own) = parts.iter().find(|((name, _), _)| name == PACKAGE).context("no binary")?;
    let mut components = Vec::new();
    for (id, part) in parts.iter().filter(|(id, _)| *id != root) {
        components.push(component(id, part, linked.contains_key(id), checksums.get(id)));
    }
    let dependencies = parts.iter().map(|(id, part)| {
        json!({"ref": reference(id), "dependsOn": part.uses.iter().map(reference).collect::<Vec<_>>()})
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": reference(root),
            "name": BINARY,
            "version": root.1,
            "licenses": [{"expression": own.licence}],
        }},
        "components": components,
        "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

/// One crate. What runs only while the binary is built is `excluded` from it.
fn component(id: &Id, part: &Part, is_linked: bool, checksum: Option<&String>) -> Value {
    let (name, version) = id;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(id),
        "name": name,
        "version": version,
        "scope": if is_linked { "required" } else { "excluded" },
        "licenses": [{"expression": part.licence}],
    });
    // Crates of this workspace are in no registry.
    if let Some(checksum) = checksum {
        component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if !part.repository.is_empty() {
        component["externalReferences"] = json!([{"type": "vcs", "url": part.repository}]);
    }
    component
}

fn reference((name, version): &Id) -> String {
    format!("{name}@{version}")
}

/// The crates of the binary along edges of these kinds, each with those that it uses itself.
fn parts(edges: &str) -> anyhow::Result<BTreeMap<Id, Part>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", PACKAGE, "--edges", edges])
        .args(["--prefix", "depth", "--format", "|{p}|{l}|{r}|"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut parts = BTreeMap::new();
    let mut path: Vec<Id> = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [depth, package, licence, repository, _] = fields[..] else {
            bail!("cargo tree says {line:?}");
        };
        // Such as `serde v1.0.0 (proc-macro)`.
        let mut words = package.split(' ');
        let name = words.next().context("a name")?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).context("a version")?;
        let id = (name, version.to_owned());
        path.truncate(depth.parse()?);
        if let Some(parent) = path.last().and_then(|parent| parts.get_mut(parent)) {
            let parent: &mut Part = parent;
            parent.uses.insert(id.clone());
        }
        path.push(id.clone());
        // The old way to say OR is none of SPDX.
        let licence = licence.replace('/', " OR ");
        let repository = repository.to_owned();
        parts.entry(id).or_insert(Part { licence, repository, uses: BTreeSet::new() });
    }
    Ok(parts)
}

/// The checksums in the lock file.
fn checksums() -> anyhow::Result<BTreeMap<Id, String>> {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))?;
    let package = |text: &str| {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    Ok(lock.split("[[package]]").skip(1).filter_map(package).collect())
}
