//! What the kernel says of a process.

use std::time::Duration;

use anyhow::Context as _;

/// Bytes that the process has had written to disks.
pub fn written_bytes(pid: u32) -> anyhow::Result<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
    field(&io, "write_bytes:").context("no write_bytes")
}

/// Memory of the process that is in RAM, in bytes.
pub fn resident_bytes(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(field(&status, "VmRSS:").context("no VmRSS")? * 1024)
}

/// Time that the process has had on all processors, to the hundredth of a second.
pub fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    // The kernel counts in ticks of this length for programs, whatever it uses itself.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name, which may hold blanks; the times are the 14th and 15th.
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let mut times = fields.split_whitespace().skip(11);
    let mut next = || times.next().context("stat is too short");
    let ticks: u32 = next()?.parse::<u32>()? + next()?.parse::<u32>()?;
    Ok(TICK * ticks)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
