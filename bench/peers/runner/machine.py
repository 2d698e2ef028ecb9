"""Where and when it was measured. No name of the machine and no path: only what explains figures."""

import os
import platform
import subprocess
from datetime import datetime, timezone

from .install import ROOT
from .shell import output_of


def machine():
    return {
        "cpus": os.cpu_count(),
        "cpu": field("/proc/cpuinfo", "model name"),
        "memory": field("/proc/meminfo", "MemTotal"),
        "os": field("/etc/os-release", "PRETTY_NAME", "=").strip('"'),
        "kernel": platform.release(),
        "fileSystem": output_of(["findmnt", "-no", "FSTYPE", "-T", str(ROOT)]),
    }


def tools():
    return {
        "Node": output_of(["node", "--version"]).lstrip("v"),
        "Python": platform.python_version(),
        "Rust": output_of(["rustc", "--version"]).split()[1],
    }


def commit():
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    if found.returncode:
        return "unknown"
    # What is measured is the product: an edited driver does not make it another one.
    changed = output_of([*git, "status", "--porcelain", "--", "crates", "Cargo.lock"])
    return found.stdout.strip() + ("-changed" if changed else "")


def now():
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def field(file, name, separator=":"):
    with open(file) as lines:
        for line in lines:
            key, _, value = line.partition(separator)
            if key.strip() == name:
                return value.strip()
    return "unknown"
