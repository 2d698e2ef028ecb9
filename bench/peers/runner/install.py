"""Puts the peers below target/peers, from their lock files; what is there already stays."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from .shell import Failure, run, say

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "bench/peers"
TARGET = ROOT / "target/peers"


def install():
    TARGET.mkdir(parents=True, exist_ok=True)
    for tool, package in (("node", "nodejs"), ("npm", "npm"), ("cargo", "rustup"), ("python3", "python3-venv")):
        if not shutil.which(tool):
            raise Failure(f"{tool} is missing: install {package}, then run this again")
    node()
    celery()
    rust()
    if not (ROOT / "target/release/duly").exists():
        raise Failure("target/release/duly is missing: run make build")


def node():
    # The drivers find their packages beside themselves, hence the copy.
    folder = TARGET / "node"
    shutil.copytree(PEERS / "node", folder, dirs_exist_ok=True)
    lock = PEERS / "node/package-lock.json"
    # Not `npm ci`: it refuses the lock file where the registry does not have the optional packages
    # of other systems. This takes the versions of the lock file, too, and leaves it as it is.
    quiet = ["--no-save", "--no-audit", "--no-fund"]
    once(folder / "installed", lock, ["npm", "install", *quiet, "--prefix", folder])


def celery():
    venv, lock = TARGET / "venv", PEERS / "celery/requirements.txt"
    if not (venv / "bin/pip").exists():
        run(["python3", "-m", "venv", venv], log=TARGET / "install.log")
    once(venv / "installed", lock, [venv / "bin/pip", "install", "--quiet", "--requirement", lock])


def rust():
    say("building the peers in Rust; minutes the first time")
    manifest = PEERS / "rust/Cargo.toml"
    command = ["cargo", "build", "--locked", "--release", "--workspace", "--manifest-path", manifest]
    env = os.environ | {"CARGO_TARGET_DIR": str(TARGET / "cargo")}
    if subprocess.run(command, env=env, cwd=ROOT).returncode:
        raise Failure("the peers in Rust do not build: see above")


def once(stamp, lock, command):
    """Runs the command unless it has been run with this lock file."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    say(f"installing {lock.parent.name} peers")
    run(command, log=TARGET / "install.log")
    stamp.write_text(digest)
