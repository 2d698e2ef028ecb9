//! The hardware and system as Linux reports them; less on other systems. No names and no paths: only
//! what explains the figures.

use std::path::Path;

use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Machine {
    cpus: usize,
    cpu: Option<String>,
    memory: Option<String>,
    os: Option<String>,
    kernel: Option<String>,
    /// Of the measured disk, if known.
    file_system: Option<String>,
}

impl Machine {
    pub(super) fn read(folder: Option<&Path>) -> Self {
        let os = field("/etc/os-release", "PRETTY_NAME", '=');
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field("/proc/cpuinfo", "model name", ':'),
            memory: field("/proc/meminfo", "MemTotal", ':'),
            os: os.map(|name| name.trim_matches('"').to_owned()),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            file_system: folder.and_then(file_system),
        }
    }
}

/// The load average of the last minute.
pub(super) fn load_average() -> Option<f64> {
    read("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

/// The value of the first line with this name.
fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = read(path)?;
    let mut fields = text.lines().filter_map(|line| line.split_once(separator));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// The file system of the innermost mount that contains the folder.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = read("/proc/mounts")?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((Path::new(words.next()?), words.next()?))
    });
    let holding = mounts.filter(|(path, _)| folder.starts_with(path));
    let nearest = holding.max_by_key(|(path, _)| path.components().count());
    nearest.map(|(_, name)| name.to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
